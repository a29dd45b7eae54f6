// Loads and runs artifacts.
#include "runtime/executor/executor.h"

#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/comm/local.h"
#include "runtime/executor/uses.h"
#include "runtime/program/types.h"

namespace partita::executor {
namespace {

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

// A whole tensor has the shape that users pass; a block has the program's.
TensorSpec Describe(const program::Port& port) {
  const bool viewed = port.model_shape() != nullptr && port.shard() == nullptr;
  return {port.name()->str(), program::ToBase(port.type()->dtype()),
          viewed ? program::ToVector(port.model_shape())
                 : program::ShapeOf(*port.type()),
          program::BytesOf(*port.type())};
}

template <typename Tensor>
absl::Status CheckTensors(const char* what,
                          const std::vector<TensorSpec>& specs,
                          const std::vector<Tensor>& tensors) {
  if (tensors.size() != specs.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected ", specs.size(), " ", what, "s, found ", tensors.size()));
  }
  for (size_t i = 0; i < specs.size(); ++i) {
    if (tensors[i].dtype != specs[i].dtype ||
        tensors[i].shape != specs[i].shape) {
      return absl::InvalidArgumentError(absl::StrCat(
          what, " '", specs[i].name, "': expected ",
          base::TypeName(specs[i].dtype, specs[i].shape), ", found ",
          base::TypeName(tensors[i].dtype, tensors[i].shape)));
    }
    if (tensors[i].data == nullptr && specs[i].bytes > 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, " '", specs[i].name, "': it has no data"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Executor>> Executor::Load(
    const std::string& path, device::Device& device,
    const LoadOptions& options) {
  PARTITA_ASSIGN_OR_RETURN(
      program::Artifact artifact,
      program::Artifact::Open(path, {options.verify_checksums}));
  return Load(std::make_shared<const program::Artifact>(std::move(artifact)),
              device, options);
}

absl::StatusOr<std::unique_ptr<Executor>> Executor::Load(
    std::shared_ptr<const program::Artifact> artifact, device::Device& device,
    const LoadOptions& options) {
  std::unique_ptr<Executor> executor(
      new Executor(std::move(artifact), device, options));
  const absl::Status status = executor->Prepare(options);
  if (!status.ok())
    return absl::Status(status.code(), absl::StrCat(executor->artifact().path(),
                                                    ": ", status.message()));
  return executor;
}

Executor::Executor(std::shared_ptr<const program::Artifact> artifact,
                   device::Device& device, const LoadOptions& options)
    : artifact_(std::move(artifact)),
      device_(device),
      communicator_(options.communicator),
      device_communicator_(options.device_communicator),
      place_(artifact_->program().mesh(),
             communicator_ == nullptr ? 0 : communicator_->rank()),
      entry_(program::EntryAt(artifact_->program(), place_)),
      loop_limit_(options.loop_limit),
      parameters_(ListParameters(artifact_->program(), entry_)) {}

// Requires one rank per device. A device that executes nothing needs one only.
absl::Status Executor::CheckRanks() {
  const program::Mesh* mesh = artifact_->program().mesh();
  const int64_t devices = program::SizeOf(mesh);
  const int64_t ranks = communicator_ == nullptr ? 1 : communicator_->size();
  if (!device_.KeepsContent()) {
    communicator_ = nullptr;
    return absl::OkStatus();
  }
  if (ranks != devices) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the model was compiled for ", devices, " device",
        devices == 1 ? "" : "s",
        mesh == nullptr ? ""
                        : absl::StrCat(" (", program::DescribeMesh(mesh), ")"),
        ", but ", ranks, ranks == 1 ? " rank runs it" : " ranks run it",
        "; start ", devices, ", or compile it for ", ranks));
  }
  if (mesh == nullptr) {
    communicator_ = nullptr;
    return absl::OkStatus();
  }
  if (communicator_ == nullptr) {
    own_communicator_ = std::move(comm::MakeLocalCommunicators(1).front());
    communicator_ = own_communicator_.get();
  }
  return absl::OkStatus();
}

absl::Status Executor::Prepare(const LoadOptions& options) {
  const program::Program& program = artifact_->program();
  PARTITA_RETURN_IF_ERROR(CheckRanks());
  DescribePorts();
  const auto text = [](const flatbuffers::String* string) {
    return string == nullptr ? std::string() : string->str();
  };
  PARTITA_RETURN_IF_ERROR(device_.CheckTarget(text(program.target()),
                                              text(program.cpu_features())));
  PARTITA_ASSIGN_OR_RETURN(stream_, device_.CreateStream());
  if (program::SizeOrZero(program.kernels()) > 0) {
    PARTITA_ASSIGN_OR_RETURN(module_, device_.LoadModule(artifact_->code()));
  }
  PARTITA_RETURN_IF_ERROR(LoadData());
  absl::Status loaded = LoadWeights(options);
  if (communicator_ != nullptr) loaded = communicator_->Agree(loaded);
  PARTITA_RETURN_IF_ERROR(loaded);
  PARTITA_RETURN_IF_ERROR(RunInit());
  return BindMain();
}

absl::Status Executor::LoadWeights(const LoadOptions& options) {
  const std::string folder = options.weights_dir.empty()
                                 ? FolderOf(artifact_->path())
                                 : options.weights_dir;
  const std::vector<Weights::Use> uses = FindUses(artifact_->program(), entry_);
  PARTITA_RETURN_IF_ERROR(MakeStateStore(options, uses));
  PARTITA_ASSIGN_OR_RETURN(
      weights_,
      Weights::Load(
          {*artifact_, device_, *stream_, place_, communicator_, folder,
           options.states == nullptr ? nullptr : options.states->weights_.get(),
           states_.get()},
          uses));
  return weights_->AddDerived(entry_);
}

// The name tells ranks and models apart that use the same folder.
absl::Status Executor::MakeStateStore(const LoadOptions& options,
                                      const std::vector<Weights::Use>& uses) {
  if (options.state_store.folder.empty()) return absl::OkStatus();
  if (!device_.SharesHostMemory() || !device_.KeepsContent())
    return absl::FailedPreconditionError(absl::StrCat(
        "optimizer states can be in files on devices whose memory is the "
        "host's, which device '",
        device_.Name(),
        "' is not; leave the folder for them out, or compile with offload: "
        "optimizer"));
  const auto& parameters = *artifact_->program().parameters();
  std::map<size_t, int64_t> bytes;
  for (size_t i = 0; i < uses.size() && options.states == nullptr; ++i) {
    const program::Parameter& parameter =
        *parameters.Get(static_cast<unsigned>(i));
    const int64_t size = program::BytesOf(*parameter.type());
    if (uses[i].updated && size > 0 &&
        parameter.kind() == program::ParameterKind::state)
      bytes[i] = size;
  }
  const int rank = communicator_ == nullptr ? 0 : communicator_->rank();
  PARTITA_ASSIGN_OR_RETURN(
      states_, StateStore::Create(options.state_store,
                                  absl::StrCat("states-",
                                               absl::Hex(artifact_->checksum(),
                                                         absl::kZeroPad8),
                                               "-rank", rank, ".bin"),
                                  bytes));
  return absl::OkStatus();
}

void Executor::DescribePorts() {
  const program::Program& program = artifact_->program();
  for (int64_t i = 0; i < program::SizeOrZero(entry_.inputs()); ++i) {
    const int index = entry_.inputs()->Get(static_cast<unsigned>(i));
    inputs_.push_back(
        Describe(*program.inputs()->Get(static_cast<unsigned>(index))));
  }
  for (int64_t i = 0; i < program::SizeOrZero(entry_.outputs()); ++i) {
    const int index = entry_.outputs()->Get(static_cast<unsigned>(i));
    outputs_.push_back(
        Describe(*program.outputs()->Get(static_cast<unsigned>(index))));
  }
}

absl::Status Executor::LoadData() {
  if (device_.SharesHostMemory()) {
    data_ = const_cast<char*>(artifact_->data().data());
    return absl::OkStatus();
  }
  PARTITA_ASSIGN_OR_RETURN(
      data_copy_, device::Allocation::Make(
                      device_, static_cast<int64_t>(artifact_->data().size())));
  data_ = data_copy_.data();
  PARTITA_RETURN_IF_ERROR(device_.CopyToDevice(
      *stream_, data_, artifact_->data().data(), data_copy_.bytes()));
  return device_.Synchronize(*stream_);
}

BoundProgram::Context Executor::BindContext(std::function<void(int)> release,
                                            bool together) {
  return {*artifact_,    device_,
          module_.get(), place_,
          communicator_, device_communicator_,
          loop_limit_,   std::move(release),
          states_.get(), together};
}

absl::Status Executor::RunInit() {
  const program::Program& program = artifact_->program();
  if (entry_.init() < 0) return absl::OkStatus();
  // init runs once, so packing does not pay: its arguments are not marked as
  // globals.
  std::vector<Slot> arguments;
  for (int64_t i = 0; i < program::SizeOrZero(entry_.init_parameters()); ++i) {
    const int parameter =
        entry_.init_parameters()->Get(static_cast<unsigned>(i));
    arguments.push_back(
        {weights_->globals()[static_cast<size_t>(parameter)].data});
  }
  const size_t parameters =
      static_cast<size_t>(program::SizeOrZero(program.parameters()));
  for (size_t i = parameters; i < weights_->globals().size(); ++i)
    arguments.push_back({weights_->globals()[i].data});
  const program::Function& function =
      *program.functions()->Get(static_cast<unsigned>(entry_.init()));
  PARTITA_ASSIGN_OR_RETURN(
      const device::Allocation frame,
      device::Allocation::Make(device_, function.frame_bytes()));
  PARTITA_ASSIGN_OR_RETURN(
      const std::unique_ptr<BoundProgram> init,
      BoundProgram::Bind(BindContext(nullptr, /*together=*/false),
                         entry_.init(), arguments, frame.data(), data_));
  PARTITA_RETURN_IF_ERROR(init->Run(*stream_, nullptr));
  PARTITA_RETURN_IF_ERROR(device_.Synchronize(*stream_));
  std::set<int> kept;
  for (int64_t i = 0; i < program::SizeOrZero(entry_.main_globals()); ++i) {
    kept.insert(entry_.main_globals()->Get(static_cast<unsigned>(i)));
  }
  for (int64_t i = 0; i < program::SizeOrZero(entry_.init_parameters()); ++i) {
    const int parameter =
        entry_.init_parameters()->Get(static_cast<unsigned>(i));
    if (kept.count(parameter) == 0)
      weights_->Release(static_cast<size_t>(parameter));
  }
  return absl::OkStatus();
}

absl::Status Executor::BindMain() {
  const program::Program& program = artifact_->program();
  const program::Function& function =
      *program.functions()->Get(static_cast<unsigned>(entry_.main()));
  PARTITA_ASSIGN_OR_RETURN(
      arena_, device::Allocation::Make(device_, function.frame_bytes()));
  std::vector<int> updates;
  for (int64_t i = 0; i < program::SizeOrZero(entry_.main_updates()); ++i)
    updates.push_back(entry_.main_updates()->Get(static_cast<unsigned>(i)));
  const std::set<int> updated(updates.begin(), updates.end());
  const auto in_file = [this](int global) {
    return states_ != nullptr && states_->Has(static_cast<size_t>(global));
  };
  std::vector<Slot> arguments;
  int port = 0;
  for (size_t i = 0; i < inputs_.size(); ++i)
    arguments.push_back({nullptr, port++});
  for (int64_t i = 0; i < program::SizeOrZero(entry_.main_globals()); ++i) {
    const int global = entry_.main_globals()->Get(static_cast<unsigned>(i));
    arguments.push_back({weights_->globals()[static_cast<size_t>(global)].data,
                         -1, updated.count(global) > 0 ? -1 : global,
                         in_file(global) ? global : -1});
  }
  for (size_t i = 0; i < outputs_.size(); ++i)
    arguments.push_back({nullptr, port++});
  for (const int global : updates)
    arguments.push_back({weights_->globals()[static_cast<size_t>(global)].data,
                         -1, -1, in_file(global) ? global : -1});
  const auto release = [this](int global) {
    weights_->Release(static_cast<size_t>(global));
  };
  PARTITA_ASSIGN_OR_RETURN(
      main_,
      BoundProgram::Bind(BindContext(release, /*together=*/true), entry_.main(),
                         arguments, arena_.data(), data_));
  ports_.resize(static_cast<size_t>(port));
  return device_.SharesHostMemory() ? absl::OkStatus() : MakeStaging();
}

absl::Status Executor::MakeStaging() {
  for (size_t i = 0; i < ports_.size(); ++i) {
    const int64_t bytes = i < inputs_.size()
                              ? inputs_[i].bytes
                              : outputs_[i - inputs_.size()].bytes;
    PARTITA_ASSIGN_OR_RETURN(ports_[i].staging,
                             device::Allocation::Make(device_, bytes));
  }
  return absl::OkStatus();
}

absl::Status Executor::PlacePort(size_t index, void* host) {
  Port& port = ports_[index];
  port.host = host;
  char* place = port.staging.data();
  if (device_.SharesHostMemory()) {
    const bool aligned = reinterpret_cast<uintptr_t>(host) % 64 == 0;
    if (!aligned && place == nullptr) {
      const int64_t bytes = index < inputs_.size()
                                ? inputs_[index].bytes
                                : outputs_[index - inputs_.size()].bytes;
      PARTITA_ASSIGN_OR_RETURN(port.staging,
                               device::Allocation::Make(device_, bytes));
      place = port.staging.data();
    }
    if (aligned) place = static_cast<char*>(host);
  }
  if (place != port.current) {
    main_->SetPort(static_cast<int>(index), place);
    port.current = place;
  }
  return absl::OkStatus();
}

absl::Status Executor::GiveInput(size_t index, const ConstTensor& input) {
  PARTITA_RETURN_IF_ERROR(PlacePort(index, const_cast<void*>(input.data)));
  const Port& port = ports_[index];
  if (port.current == port.host) return absl::OkStatus();
  bool taken = false;
  if (uploads_ != nullptr) {
    PARTITA_ASSIGN_OR_RETURN(
        taken, uploads_->Take(*stream_, index, port.host, port.current));
  }
  return taken ? absl::OkStatus()
               : device_.CopyToDevice(*stream_, port.current, port.host,
                                      inputs_[index].bytes);
}

absl::Status Executor::MakeUploads() {
  const program::Program& program = artifact_->program();
  std::vector<int64_t> bytes;
  for (int64_t i = 0; i < program::SizeOrZero(entry_.inputs()); ++i) {
    const program::Port& port = *program.inputs()->Get(
        static_cast<unsigned>(entry_.inputs()->Get(static_cast<unsigned>(i))));
    bytes.push_back(port.role() == program::PortRole::data
                        ? inputs_[static_cast<size_t>(i)].bytes
                        : 0);
  }
  PARTITA_ASSIGN_OR_RETURN(uploads_, Uploads::Make(device_, bytes));
  return absl::OkStatus();
}

absl::Status Executor::Prefetch(NextInputs inputs) {
  if (!LooksAhead() || !not_ahead_.empty()) return absl::OkStatus();
  if (uploads_ == nullptr)
    PARTITA_RETURN_IF_ERROR(EndUploadsIfFull(MakeUploads()));
  if (uploads_ != nullptr) next_inputs_ = std::move(inputs);
  return absl::OkStatus();
}

// Lack of memory for prefetching must not end the training.
absl::Status Executor::EndUploadsIfFull(const absl::Status& status) {
  if (!absl::IsResourceExhausted(status)) return status;
  uploads_.reset();
  not_ahead_ = std::string(status.message());
  return absl::OkStatus();
}

absl::Status Executor::Run(const std::vector<ConstTensor>& inputs,
                           const std::vector<MutableTensor>& outputs) {
  PARTITA_RETURN_IF_ERROR(CheckTensors("input", inputs_, inputs));
  PARTITA_RETURN_IF_ERROR(CheckTensors("output", outputs_, outputs));
  const NextInputs next = std::exchange(next_inputs_, nullptr);
  for (size_t i = 0; i < inputs.size(); ++i)
    PARTITA_RETURN_IF_ERROR(GiveInput(i, inputs[i]));
  if (uploads_ != nullptr) PARTITA_RETURN_IF_ERROR(uploads_->End(*stream_));
  for (size_t i = 0; i < outputs.size(); ++i)
    PARTITA_RETURN_IF_ERROR(PlacePort(inputs.size() + i, outputs[i].data));
  if (nan_trace_ != nullptr) TraceSources();
  const auto upload = [&]() -> absl::Status {
    if (next == nullptr) return absl::OkStatus();
    PARTITA_ASSIGN_OR_RETURN(const std::vector<ConstTensor> tensors, next());
    return EndUploadsIfFull(uploads_->Begin(tensors));
  };
  PARTITA_RETURN_IF_ERROR(
      main_->Run(*stream_, profile_.get(), nan_trace_.get(), upload));
  if (nan_trace_ != nullptr) TraceOutcomes();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Port& port = ports_[inputs.size() + i];
    if (port.current != port.host) {
      PARTITA_RETURN_IF_ERROR(device_.CopyToHost(
          *stream_, port.host, port.current, outputs_[i].bytes));
    }
  }
  return device_.Synchronize(*stream_);
}

double Executor::FlopsPerRun() const {
  double flops = 0;
  for (const StepLabel& label : main_->Labels()) flops += label.flops;
  return flops;
}

MemoryUse Executor::Memory() const {
  const device::MemoryReport report = device_.Memory();
  MemoryUse use;
  use.arena = arena_.bytes();
  use.globals = weights_->OwnedBytes() + data_copy_.bytes();
  use.packed = report.packed;
  use.scratch = report.scratch;
  use.staging = main_->SlotBytes();
  if (uploads_ != nullptr) use.staging += uploads_->bytes();
  for (const Port& port : ports_) use.staging += port.staging.bytes();
  use.mapped = weights_->MappedBytes();
  use.host = weights_->HostBytes();
  if (states_ != nullptr) {
    use.host += states_->BufferBytes();
    use.files = states_->FileBytes();
  }
  return use;
}

RankUse Executor::Use() const {
  return {static_cast<int>(place_.IndexAlong(artifact_->program().pipeline())),
          step_count(), FlopsPerRun(), Memory()};
}

}  // namespace partita::executor
