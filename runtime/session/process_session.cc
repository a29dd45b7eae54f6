// Sessions over several processes, including this one.
#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/executor/rank_executor.h"
#include "runtime/program/mesh.h"
#include "runtime/program/types.h"
#include "runtime/session/make_device.h"
#include "runtime/session/session.h"

namespace partita::session {
namespace {

using executor::ConstTensor;
using executor::MutableTensor;
using executor::ParameterSpec;
using executor::TensorSpec;

class ProcessSession : public Session {
 public:
  ProcessSession(comm::Communicator& communicator,
                 const program::Program& program)
      : communicator_(communicator),
        inputs_(executor::GlobalInputs(program)),
        outputs_(executor::GlobalOutputs(program)),
        parameters_(executor::ListParameters(program)) {}

  absl::Status Load(std::shared_ptr<const program::Artifact> artifact,
                    const SessionOptions& options, int index, int threads) {
    PARTITA_ASSIGN_OR_RETURN(
        device_, MakeDevice(options, artifact->program(), index, threads));
    executor::LoadOptions load;
    load.weights_dir = options.weights_dir;
    load.communicator = &communicator_;
    PARTITA_ASSIGN_OR_RETURN(const device::MakeCommunicator make_communicator,
                             MakeCommunicators(options, artifact->program(),
                                               /*in_threads=*/false));
    PARTITA_ASSIGN_OR_RETURN(device_communicator_,
                             make_communicator(index, communicator_));
    load.device_communicator = device_communicator_.get();
    PARTITA_ASSIGN_OR_RETURN(
        executor_,
        executor::RankExecutor::Load(std::move(artifact), *device_, load));
    std::vector<double> flops = {executor_->executor().FlopsPerRun()};
    PARTITA_RETURN_IF_ERROR(Combine(comm::Reduction::kSum, flops));
    flops_ = flops[0];
    return absl::OkStatus();
  }

  const std::vector<TensorSpec>& inputs() const override { return inputs_; }
  const std::vector<TensorSpec>& outputs() const override { return outputs_; }
  int64_t step_count() const override {
    return executor_->executor().step_count();
  }
  int devices() const override { return communicator_.size(); }
  void EnableProfile() override { executor_->executor().EnableProfile(); }
  std::vector<executor::Profile*> profiles() override {
    return OneIfThere(executor_->executor().profile());
  }
  absl::Status Run(const std::vector<ConstTensor>& inputs,
                   const std::vector<MutableTensor>& outputs) override {
    return executor_->Run(inputs, outputs);
  }
  bool LooksAhead() const override { return executor_->LooksAhead(); }
  absl::Status Prefetch(const std::vector<ConstTensor>& inputs) override {
    return executor_->Prefetch(inputs);
  }
  std::string NotAhead() const override {
    const std::string& found = executor_->executor().not_ahead();
    return found.empty() ? "" : absl::StrCat("rank ", rank(), ": ", found);
  }
  absl::Status EnableNanTrace() override {
    return executor_->executor().EnableNanTrace();
  }
  absl::Status CheckFinite() override;

  const program::Program& program() const override {
    return executor_->executor().artifact().program();
  }
  double FlopsPerRun() const override { return flops_; }
  const std::vector<ParameterSpec>& parameters() const override {
    return parameters_;
  }
  Part PartOf(const ParameterSpec& parameter) const override {
    Part part;
    part.spec = parameter.local;
    const program::Parameter& description =
        *program().parameters()->Get(static_cast<unsigned>(parameter.index));
    if (!program::HoldsFirstCopy(
            program(), description.shard(),
            program::EntriesThatHold(program(), program::Held::kParameter,
                                     static_cast<int64_t>(parameter.index)),
            rank()))
      return part;
    executor::BlockMap(description.shard(), *description.type(),
                       executor_->executor().place())
        .ForEachRun([&](int64_t whole, int64_t local, int64_t count) {
          part.runs.push_back({whole, local, count});
        });
    return part;
  }
  absl::Status ReadPart(const Part& part, void* memory) override {
    return executor_->executor().ReadParameter(
        part.spec.name, {part.spec.dtype, part.spec.shape, memory});
  }
  absl::Status WriteParameter(const std::string& name,
                              const ConstTensor& whole) override {
    return executor_->WriteParameter(name, whole);
  }

  int rank() const override { return communicator_.rank(); }
  int processes() const override { return communicator_.size(); }
  program::Rows InputRows() const override;
  bool IsMain() const override { return communicator_.rank() == 0; }
  absl::Status Align() override {
    return communicator_.Agree(absl::OkStatus(), 1);
  }
  absl::Status Agree(const absl::Status& status) override {
    return communicator_.Agree(status);
  }
  absl::Status Complete(const std::vector<MutableTensor>& outputs,
                        std::vector<double>& times_ms) override {
    PARTITA_RETURN_IF_ERROR(executor_->Gather(communicator_, outputs));
    return Max(times_ms);
  }
  absl::StatusOr<std::vector<executor::RankUse>> Uses() override;
  absl::Status GatherNumbers(
      const std::vector<MutableTensor>& outputs) override {
    return executor_->Gather(communicator_, outputs,
                             executor::RankExecutor::Which::kNumbers);
  }
  absl::Status Max(std::vector<double>& values) override {
    return Combine(comm::Reduction::kMax, values);
  }

 private:
  // Reduces each value over all processes.
  absl::Status Combine(comm::Reduction reduction, std::vector<double>& values) {
    std::unique_ptr<comm::Collective>& collective =
        combined_[{reduction, values.size()}];
    if (collective == nullptr) {
      comm::Operation operation;
      operation.reduction = reduction;
      operation.dtype = base::DType::kF64;
      operation.input_shape =
          operation.output_shape = {static_cast<int64_t>(values.size())};
      operation.name = "values of all processes";
      std::vector<int> ranks(static_cast<size_t>(communicator_.size()));
      std::iota(ranks.begin(), ranks.end(), 0);
      PARTITA_ASSIGN_OR_RETURN(
          collective,
          communicator_.Prepare(std::move(operation), std::move(ranks)));
    }
    return communicator_.Run(*collective, values.data(), values.data());
  }

  comm::Communicator& communicator_;
  const std::vector<TensorSpec> inputs_;
  const std::vector<TensorSpec> outputs_;
  const std::vector<ParameterSpec> parameters_;  // of the whole model
  std::unique_ptr<device::Device> device_;
  std::unique_ptr<comm::DeviceCommunicator> device_communicator_;
  std::unique_ptr<executor::RankExecutor> executor_;
  double flops_ = 0;  // per run, over all devices
  std::map<std::pair<comm::Reduction, size_t>,
           std::unique_ptr<comm::Collective>>
      combined_;  // by reduction and length
};

// Sums one row of numbers per process; each process fills its own row, the
// others are zero.
absl::StatusOr<std::vector<executor::RankUse>> ProcessSession::Uses() {
  const executor::RankUse own = executor_->executor().Use();
  const executor::MemoryUse& memory = own.memory;
  const std::vector<double> numbers = {static_cast<double>(own.entry),
                                       static_cast<double>(own.steps),
                                       own.flops,
                                       static_cast<double>(memory.arena),
                                       static_cast<double>(memory.globals),
                                       static_cast<double>(memory.packed),
                                       static_cast<double>(memory.scratch),
                                       static_cast<double>(memory.staging),
                                       static_cast<double>(memory.mapped),
                                       static_cast<double>(memory.host)};
  std::vector<double> all(numbers.size() * static_cast<size_t>(processes()), 0);
  std::copy(numbers.begin(), numbers.end(),
            all.begin() + rank() * static_cast<int64_t>(numbers.size()));
  PARTITA_RETURN_IF_ERROR(Combine(comm::Reduction::kSum, all));
  std::vector<executor::RankUse> uses;
  for (size_t i = 0; i < all.size(); i += numbers.size()) {
    const auto whole = [&](size_t j) {
      return static_cast<int64_t>(all[i + j]);
    };
    uses.push_back({static_cast<int>(whole(0)),
                    whole(1),
                    all[i + 2],
                    {whole(3), whole(4), whole(5), whole(6), whole(7), whole(8),
                     whole(9)}});
  }
  return uses;
}

// The process with the first non-finite number returns the error.
absl::Status ProcessSession::CheckFinite() {
  using executor::NumberKind;
  std::vector<double> worst = {
      static_cast<double>(executor_->executor().Outcome())};
  PARTITA_RETURN_IF_ERROR(Max(worst));
  const auto kind = static_cast<NumberKind>(static_cast<int>(worst[0]));
  if (kind == NumberKind::kFinite) return absl::OkStatus();
  const auto found = executor_->executor().FindNonFinite(kind);
  const double own = found ? -static_cast<double>(found->order)
                           : -std::numeric_limits<double>::infinity();
  std::vector<double> first = {own};
  PARTITA_RETURN_IF_ERROR(Max(first));
  absl::Status status;
  if (own == first[0])
    status = absl::FailedPreconditionError(found ? found->text
                                                 : executor::kUntraced);
  return Agree(status);
}

program::Rows ProcessSession::InputRows() const {
  program::Rows rows = {std::numeric_limits<int64_t>::max(), 0};
  int64_t size = -1;
  for (int64_t i = 0; i < program::SizeOrZero(program().inputs()); ++i) {
    const program::Port& port =
        *program().inputs()->Get(static_cast<unsigned>(i));
    const TensorSpec& spec = inputs_[static_cast<size_t>(i)];
    if (port.role() != program::PortRole::data) continue;
    // A device's rows over all microbatches are not contiguous.
    if (port.model_shape() != nullptr || spec.shape.empty() ||
        (size >= 0 && spec.shape[0] != size))
      return Session::InputRows();
    size = spec.shape[0];
    program::Rows own = {0, size};
    if (port.shard() != nullptr)
      own = program::OwnedRows(*port.shard(), 0, executor_->executor().place());
    rows.begin = std::min(rows.begin, own.begin);
    rows.end = std::max(rows.end, own.end);
  }
  return rows.begin < rows.end ? rows : Session::InputRows();
}

// Checks that all ranks opened the same bytes, at any path.
absl::Status CheckSameModel(const program::Artifact& artifact,
                            comm::Communicator& communicator) {
  const std::string content =
      absl::StrCat("checksum ", absl::Hex(artifact.checksum(), absl::kZeroPad8),
                   ", ", artifact.file_bytes(), " bytes");
  PARTITA_ASSIGN_OR_RETURN(const std::vector<std::string> contents,
                           communicator.GatherTexts(content, "models"));
  PARTITA_ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                           communicator.GatherTexts(artifact.path(), "models"));
  const auto other =
      std::find_if(contents.begin(), contents.end(),
                   [&](const std::string& c) { return c != contents[0]; });
  if (other == contents.end()) return absl::OkStatus();
  const auto describe = [&](size_t rank) {
    return absl::StrCat(communicator.Describe(static_cast<int>(rank)), " with ",
                        paths[rank], " (", contents[rank], ")");
  };
  return communicator.Agree(absl::FailedPreconditionError(absl::StrCat(
      "expected the same compiled model on all ranks, found ", describe(0),
      " and ", describe(static_cast<size_t>(other - contents.begin())),
      "; compile it once and give every rank a copy of that file")));
}

}  // namespace

absl::Status CheckProcesses(const program::Artifact& artifact,
                            const SessionOptions& options,
                            const comm::Launch& launch) {
  PARTITA_RETURN_IF_ERROR(CheckShareGpu(options, artifact.program()));
  const program::Mesh* mesh = artifact.program().mesh();
  const int64_t size = program::SizeOf(mesh);
  if (size != launch.size) {
    return absl::FailedPreconditionError(absl::StrCat(
        artifact.path(), ": the model was compiled for ", size, " device",
        size == 1 ? "" : "s",
        mesh == nullptr ? ""
                        : absl::StrCat(" (", program::DescribeMesh(mesh), ")"),
        ", found ", launch.size, " process", launch.size == 1 ? "" : "es",
        " of ", launch.launcher, "; start ", size, " (",
        launch.launcher == "srun"       ? "srun -n "
        : launch.launcher == "torchrun" ? "WORLD_SIZE="
                                        : "mpirun -np ",
        size, "), or compile the model for a mesh of ", launch.size));
  }
  if (options.devices == 0 || options.devices == size) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      artifact.path(), ": the model was compiled for ", size,
      " devices, found --devices ", options.devices, "; leave it out where ",
      launch.launcher, " starts the processes"));
}

absl::StatusOr<std::unique_ptr<Session>> OpenProcessSession(
    const SessionOptions& options, const comm::Launch& launch,
    comm::Communicator& communicator) {
  absl::StatusOr<program::Artifact> opened =
      program::Artifact::Open(options.model);
  PARTITA_RETURN_IF_ERROR(communicator.Agree(opened.status()));
  PrepareEnvironment(options, opened->program());
  PARTITA_RETURN_IF_ERROR(CheckSameModel(*opened, communicator));
  PARTITA_RETURN_IF_ERROR(
      communicator.Agree(CheckProcesses(*opened, options, launch)));
  const auto artifact =
      std::make_shared<const program::Artifact>(*std::move(opened));
  auto session =
      std::make_unique<ProcessSession>(communicator, artifact->program());
  PARTITA_RETURN_IF_ERROR(
      session->Load(artifact, options, launch.local_rank,
                    ThreadsOf(options, 1, launch.local_size)));
  return std::unique_ptr<Session>(std::move(session));
}

}  // namespace partita::session
