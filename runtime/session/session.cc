// Sessions over one executor and over rank threads.
#include "runtime/session/session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/executor/multi_device.h"
#include "runtime/program/mesh.h"
#include "runtime/program/types.h"
#include "runtime/session/make_device.h"

namespace partita::session {
namespace {

using executor::ConstTensor;
using executor::MutableTensor;
using executor::ParameterSpec;
using executor::TensorSpec;

class SingleSession : public Session {
 public:
  static absl::StatusOr<std::unique_ptr<Session>> Open(
      std::shared_ptr<const program::Artifact> artifact,
      const SessionOptions& options) {
    auto session = std::make_unique<SingleSession>();
    PARTITA_ASSIGN_OR_RETURN(
        session->device_,
        MakeDevice(options, artifact->program(), 0, options.threads));
    executor::LoadOptions load;
    load.weights_dir = options.weights_dir;
    PARTITA_ASSIGN_OR_RETURN(
        session->executor_,
        executor::Executor::Load(std::move(artifact), *session->device_, load));
    return std::unique_ptr<Session>(std::move(session));
  }

  const std::vector<TensorSpec>& inputs() const override {
    return executor_->inputs();
  }
  const std::vector<TensorSpec>& outputs() const override {
    return executor_->outputs();
  }
  int64_t step_count() const override { return executor_->step_count(); }
  int devices() const override {
    return static_cast<int>(
        program::SizeOf(executor_->artifact().program().mesh()));
  }
  void EnableProfile() override { executor_->EnableProfile(); }
  std::vector<executor::Profile*> profiles() override {
    return OneIfThere(executor_->profile());
  }
  absl::StatusOr<std::vector<executor::RankUse>> Uses() override {
    return std::vector<executor::RankUse>{executor_->Use()};
  }
  absl::Status Run(const std::vector<ConstTensor>& inputs,
                   const std::vector<MutableTensor>& outputs) override {
    return executor_->Run(inputs, outputs);
  }
  bool LooksAhead() const override { return executor_->LooksAhead(); }
  absl::Status Prefetch(const std::vector<ConstTensor>& inputs) override {
    return executor_->Prefetch([inputs] { return inputs; });
  }
  std::string NotAhead() const override { return executor_->not_ahead(); }
  absl::Status EnableNanTrace() override { return executor_->EnableNanTrace(); }
  absl::Status CheckFinite() override {
    const executor::NumberKind worst = executor_->Outcome();
    if (worst == executor::NumberKind::kFinite) return absl::OkStatus();
    const auto found = executor_->FindNonFinite(worst);
    return absl::FailedPreconditionError(found ? found->text
                                               : executor::kUntraced);
  }
  const program::Program& program() const override {
    return executor_->artifact().program();
  }
  double FlopsPerRun() const override {
    return executor_->FlopsPerRun() * devices();
  }
  const std::vector<ParameterSpec>& parameters() const override {
    return executor_->parameters();
  }
  absl::Status ReadPart(const Part& part, void* memory) override {
    return executor_->ReadParameter(part.spec.name,
                                    {part.spec.dtype, part.spec.shape, memory});
  }
  absl::Status WriteParameter(const std::string& name,
                              const ConstTensor& whole) override {
    return executor_->WriteParameter(name, whole);
  }

 private:
  std::unique_ptr<device::Device> device_;
  std::unique_ptr<executor::Executor> executor_;
};

class ThreadSession : public Session {
 public:
  explicit ThreadSession(std::unique_ptr<executor::MultiDeviceRunner> runner)
      : runner_(std::move(runner)) {}

  const std::vector<TensorSpec>& inputs() const override {
    return runner_->inputs();
  }
  const std::vector<TensorSpec>& outputs() const override {
    return runner_->outputs();
  }
  int64_t step_count() const override { return runner_->step_count(); }
  int devices() const override { return runner_->devices(); }
  void EnableProfile() override { runner_->EnableProfile(); }
  std::vector<executor::Profile*> profiles() override {
    return runner_->profiles();
  }
  absl::StatusOr<std::vector<executor::RankUse>> Uses() override {
    return runner_->Uses();
  }
  absl::Status Run(const std::vector<ConstTensor>& inputs,
                   const std::vector<MutableTensor>& outputs) override {
    return runner_->Run(inputs, outputs);
  }
  bool LooksAhead() const override { return runner_->LooksAhead(); }
  absl::Status Prefetch(const std::vector<ConstTensor>& inputs) override {
    runner_->Prefetch(inputs);
    return absl::OkStatus();
  }
  std::string NotAhead() const override { return runner_->NotAhead(); }
  absl::Status EnableNanTrace() override { return runner_->EnableNanTrace(); }
  absl::Status CheckFinite() override {
    const std::string found = runner_->DescribeNonFinite();
    return found.empty() ? absl::OkStatus()
                         : absl::FailedPreconditionError(found);
  }
  const program::Program& program() const override {
    return runner_->artifact().program();
  }
  double FlopsPerRun() const override { return runner_->FlopsPerRun(); }
  const std::vector<ParameterSpec>& parameters() const override {
    return runner_->parameters();
  }
  absl::Status ReadPart(const Part& part, void* memory) override {
    return runner_->ReadParameter(part.spec.name,
                                  {part.spec.dtype, part.spec.shape, memory});
  }
  absl::Status WriteParameter(const std::string& name,
                              const ConstTensor& whole) override {
    return runner_->WriteParameter(name, whole);
  }

 private:
  const std::unique_ptr<executor::MultiDeviceRunner> runner_;
};

}  // namespace

int64_t Session::LimitOf(const std::string& input) const {
  for (int64_t i = 0; i < program::SizeOrZero(program().inputs()); ++i) {
    const program::Port& port =
        *program().inputs()->Get(static_cast<unsigned>(i));
    if (port.name()->str() == input) return port.limit();
  }
  return 0;
}

Session::Part Session::PartOf(const ParameterSpec& parameter) const {
  const int64_t count = base::ElementCount(parameter.whole.shape).value_or(0);
  return {{{0, 0, count}}, parameter.whole};
}

program::Rows Session::InputRows() const { return {0, 0}; }

std::vector<executor::Profile*> OneIfThere(executor::Profile* profile) {
  if (profile == nullptr) return {};
  return {profile};
}

executor::MemoryUse FullestOf(const std::vector<executor::RankUse>& uses) {
  executor::MemoryUse most;
  for (const executor::RankUse& use : uses)
    if (use.memory.Total() >= most.Total()) most = use.memory;
  return most;
}

comm::CommOptions CommOptionsOf(const SessionOptions& options) {
  comm::CommOptions comm = comm::OptionsFromEnvironment();
  if (options.timeout) {
    comm.timeout = std::chrono::milliseconds(
        static_cast<int64_t>(*options.timeout * 1000));
  }
  return comm;
}

absl::StatusOr<std::unique_ptr<Session>> OpenSession(
    const SessionOptions& options) {
  PARTITA_ASSIGN_OR_RETURN(program::Artifact opened,
                           program::Artifact::Open(options.model));
  const auto artifact =
      std::make_shared<const program::Artifact>(std::move(opened));
  PARTITA_ASSIGN_OR_RETURN(const device::DeviceKind* const kind,
                           DeviceOf(options, artifact->program()));
  PARTITA_RETURN_IF_ERROR(CheckShareGpu(options, artifact->program()));
  const int64_t size = program::SizeOf(artifact->program().mesh());
  const bool matches = options.devices == 0 || options.devices == size;
  // A device that executes nothing represents all devices that run the same
  // entry.
  if (matches &&
      (artifact->program().mesh() == nullptr ||
       (!kind->executes && artifact->program().entries()->size() == 1)))
    return SingleSession::Open(artifact, options);
  PrepareEnvironment(options, artifact->program());
  executor::MultiDeviceOptions multi;
  multi.devices = options.devices;
  multi.weights_dir = options.weights_dir;
  multi.comm = CommOptionsOf(options);
  const int devices = static_cast<int>(std::min<int64_t>(size, 1 << 20));
  const int threads = ThreadsOf(options, devices, devices);
  multi.make_device = [options, artifact, threads](int rank) {
    return MakeDevice(options, artifact->program(), rank, threads);
  };
  PARTITA_ASSIGN_OR_RETURN(const device::MakeCommunicator make_communicator,
                           MakeCommunicators(options, artifact->program(),
                                             /*in_threads=*/true));
  multi.make_communicator = [make_communicator](comm::Communicator& base) {
    return make_communicator(base.rank(), base);
  };
  PARTITA_ASSIGN_OR_RETURN(std::unique_ptr<executor::MultiDeviceRunner> runner,
                           executor::MultiDeviceRunner::Load(artifact, multi));
  return std::unique_ptr<Session>(
      std::make_unique<ThreadSession>(std::move(runner)));
}

}  // namespace partita::session
