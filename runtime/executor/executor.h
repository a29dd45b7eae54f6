// Runs an artifact on a device.
#ifndef PARTITA_RUNTIME_EXECUTOR_EXECUTOR_H_
#define PARTITA_RUNTIME_EXECUTOR_EXECUTOR_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/device_communicator.h"
#include "runtime/device/device.h"
#include "runtime/executor/bound_program.h"
#include "runtime/executor/nan_trace.h"
#include "runtime/executor/parameters.h"
#include "runtime/executor/profile.h"
#include "runtime/executor/state_store.h"
#include "runtime/executor/tensor.h"
#include "runtime/executor/uploads.h"
#include "runtime/executor/weights.h"
#include "runtime/program/artifact.h"
#include "runtime/program/mesh.h"

namespace partita::executor {

class Executor;

struct LoadOptions {
  // Base folder of relative weight paths. Empty: the artifact's folder.
  std::string weights_dir;
  bool verify_checksums = true;
  // This rank's communicator, with one rank per device of the program's mesh;
  // must outlive the executor. Null: a single rank.
  comm::Communicator* communicator = nullptr;
  // This rank's communicator for device memory, in addition to `communicator`;
  // must outlive the executor. Null: collectives go through host memory.
  comm::DeviceCommunicator* device_communicator = nullptr;
  // An executor of another program on the same device. The states of this
  // program, and parameters that the other program's steps change, are its, by
  // name; it must outlive this executor. Null: own ones.
  const Executor* states = nullptr;
  // How long one loop may run, from its first iteration to its last.
  std::chrono::milliseconds loop_limit{60000};
  // Stores optimizer states in a file, on devices that share host memory.
  StateStoreOptions state_store;
};

// Bytes that a loaded model holds.
struct MemoryUse {
  int64_t arena = 0;  // activations, as planned by the compiler
  // Weights and derived values in allocated memory that has not been released.
  int64_t globals = 0;
  int64_t packed = 0;   // weights in the libraries' layouts
  int64_t scratch = 0;  // of kernels and libraries
  // On devices with memory of their own: inputs, prefetched inputs of the next
  // run, outputs, and tensors being sent.
  int64_t staging = 0;
  int64_t mapped = 0;  // weights read in place from mapped files
  // States kept in host memory, or buffers of states in files; not in Total().
  int64_t host = 0;
  int64_t files = 0;  // of states, on disk
  int64_t Total() const { return arena + globals + packed + scratch + staging; }
};

// Work and memory of one rank per run.
struct RankUse {
  int entry = 0;  // index of its entry in the program
  int64_t steps = 0;
  double flops = 0;  // of matrix products and convolutions
  MemoryUse memory;
};

// A model ready to run. Used by one thread at a time; the device must outlive
// it.
class Executor {
 public:
  // Opens and checks the artifact, loads the weights, runs init, prepares every
  // step. Collective over all ranks: if one cannot load its weights, all fail
  // with its status.
  static absl::StatusOr<std::unique_ptr<Executor>> Load(
      const std::string& path, device::Device& device,
      const LoadOptions& options = {});
  // Loads an artifact that several ranks share.
  static absl::StatusOr<std::unique_ptr<Executor>> Load(
      std::shared_ptr<const program::Artifact> artifact, device::Device& device,
      const LoadOptions& options);

  // This rank's blocks of the model's inputs and outputs.
  const std::vector<TensorSpec>& inputs() const { return inputs_; }
  const std::vector<TensorSpec>& outputs() const { return outputs_; }
  const program::Artifact& artifact() const { return *artifact_; }
  const program::MeshPlace& place() const { return place_; }
  int64_t step_count() const { return main_->step_count(); }
  // FLOPs of this rank's matrix products and convolutions.
  double FlopsPerRun() const;

  // Runs one step. `inputs` and `outputs` are in the order of inputs() and
  // outputs(); types and shapes must match. Returns when the outputs are
  // complete. Allocates nothing, except staging when memory that is not 64-byte
  // aligned is first seen.
  absl::Status Run(const std::vector<ConstTensor>& inputs,
                   const std::vector<MutableTensor>& outputs);

  // True if the device has memory of its own, so that inputs can be prefetched.
  bool LooksAhead() const { return !device_.SharesHostMemory(); }
  // Prefetches inputs of the run after the next one. `inputs` is called while
  // the next run executes; tensors with data whose port has the role `data`
  // (program::PortRole) are copied to the device. A run that is given the same
  // host memory uses the copy, so that memory must not change until that run is
  // done.
  // The first call allocates device memory. If there is too little, now or
  // later, prefetching is switched off and every run copies its own inputs.
  using NextInputs = std::function<absl::StatusOr<std::vector<ConstTensor>>()>;
  absl::Status Prefetch(NextInputs inputs);
  // The error that switched prefetching off; empty if it works.
  const std::string& not_ahead() const { return not_ahead_; }

  // Parameters of this rank's entry.
  const std::vector<ParameterSpec>& parameters() const { return parameters_; }
  // Reads this rank's block of a parameter, between runs: its value after the
  // last run. NotFound if there is no such parameter; InvalidArgument if the
  // type is not that of the block.
  absl::Status ReadParameter(const std::string& name,
                             const MutableTensor& block);
  // Replaces the block; rows beyond the end of the whole tensor must be zero.
  // FailedPrecondition for parameters that are not updated: libraries may have
  // packed them, and other values may be derived from them.
  absl::Status WriteParameter(const std::string& name,
                              const ConstTensor& block);

  MemoryUse Memory() const;
  RankUse Use() const;

  // Times every step from now on.
  void EnableProfile() {
    profile_ = std::make_unique<Profile>(main_->Labels());
  }
  Profile* profile() { return profile_.get(); }

  // Traces non-finite numbers from now on; slow. FailedPrecondition if the
  // device keeps memory of its own, if the program lacks the types of its
  // steps' outputs, or if states are in a file.
  absl::Status EnableNanTrace();
  // The worst kind of number in the last run's outcomes: the loss (the output
  // "loss", else the first output) and the updated parameters. Padding does not
  // count.
  NumberKind Outcome() const { return nan_trace_->worst(); }
  // Finds the step that made numbers as bad as `kind`, the worst Outcome of all
  // ranks. Empty if this rank cannot tell.
  std::optional<NonFinite> FindNonFinite(NumberKind kind) const;

 private:
  Executor(std::shared_ptr<const program::Artifact> artifact,
           device::Device& device, const LoadOptions& options);
  absl::Status CheckRanks();
  absl::Status Prepare(const LoadOptions& options);
  void DescribePorts();
  absl::Status LoadData();
  absl::Status LoadWeights(const LoadOptions& options);
  absl::Status MakeStateStore(const LoadOptions& options,
                              const std::vector<Weights::Use>& uses);
  absl::Status RunInit();
  absl::Status BindMain();
  absl::Status MakeStaging();
  absl::Status PlacePort(size_t port, void* host);
  absl::Status GiveInput(size_t index, const ConstTensor& input);
  absl::Status MakeUploads();
  absl::Status EndUploadsIfFull(const absl::Status& status);
  void TraceSources();
  void TraceOutcomes();
  // Calls visit(parameter, memory, worst number in its block) for each updated
  // parameter, or for all used ones.
  using VisitParameter = std::function<void(
      const ParameterSpec&, const void* memory, const NanTrace::Look&)>;
  void ForEachParameter(bool updated_only, const VisitParameter& visit) const;
  BoundProgram::Context BindContext(std::function<void(int)> release,
                                    bool together);

  // Memory of a port whose caller memory cannot be used directly.
  struct Port {
    device::Allocation staging;
    void* host = nullptr;     // the caller's memory in this run
    char* current = nullptr;  // the memory that steps use
  };

  const std::shared_ptr<const program::Artifact> artifact_;
  device::Device& device_;
  std::unique_ptr<comm::Communicator> own_communicator_;  // of a single rank
  comm::Communicator* communicator_;
  comm::DeviceCommunicator* const device_communicator_;
  const program::MeshPlace place_;
  const program::Entry& entry_;  // the entry that this rank runs
  const std::chrono::milliseconds loop_limit_;
  std::vector<TensorSpec> inputs_, outputs_;
  const std::vector<ParameterSpec> parameters_;
  std::unique_ptr<device::Stream> stream_;
  std::unique_ptr<device::Module> module_;
  device::Allocation data_copy_;  // on devices with memory of their own
  char* data_ = nullptr;
  std::unique_ptr<StateStore> states_;  // null: all states are in memory
  std::unique_ptr<Weights> weights_;
  device::Allocation arena_;
  std::vector<Port> ports_;           // inputs, then outputs
  std::unique_ptr<Uploads> uploads_;  // null: nothing is prefetched
  std::string not_ahead_;             // not empty: prefetching is switched off
  NextInputs next_inputs_;            // of the run after the next one
  std::unique_ptr<BoundProgram> main_;
  std::unique_ptr<Profile> profile_;
  std::unique_ptr<NanTrace> nan_trace_;
};

}  // namespace partita::executor

#endif  // PARTITA_RUNTIME_EXECUTOR_EXECUTOR_H_
