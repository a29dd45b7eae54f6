// Runs an artifact on a device.
#ifndef PARTITA_RUNTIME_EXECUTOR_EXECUTOR_H_
#define PARTITA_RUNTIME_EXECUTOR_EXECUTOR_H_

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
#include "runtime/executor/tensor.h"
#include "runtime/executor/uploads.h"
#include "runtime/executor/weights.h"
#include "runtime/program/artifact.h"
#include "runtime/program/mesh.h"

namespace partita::executor {

struct LoadOptions {
  std::string weights_dir;  // where relative paths of weights begin; empty: the
                            // artifact's folder
  bool verify_checksums = true;
  // One rank of as many as the program's mesh has devices; outlives the
  // executor. Null: the only rank.
  comm::Communicator* communicator = nullptr;
  // This rank's end for collectives on the device's memory, beside the
  // communicator; outlives the executor. Null: they go through the host's.
  comm::DeviceCommunicator* device_communicator = nullptr;
};

// Bytes that a loaded model holds.
struct MemoryUse {
  int64_t arena = 0;    // activations, as planned by the compiler
  int64_t globals = 0;  // weights and derived values in memory of our own, as
                        // far as not released
  int64_t packed = 0;   // weights in the libraries' layouts
  int64_t scratch = 0;  // of kernels and libraries
  int64_t staging = 0;  // on devices with memory of their own: inputs, those of
                        // the next run, outputs and what is being sent
  int64_t mapped = 0;   // weights read from mapped files as they are
  int64_t host = 0;     // states kept in the host's memory, none of the total
  int64_t Total() const { return arena + globals + packed + scratch + staging; }
};

// What one rank does in a run.
struct RankUse {
  int entry = 0;  // of the program
  int64_t steps = 0;
  double flops = 0;  // of matrix products and convolutions
  MemoryUse memory;
};

// A model ready to run. Used by one thread at a time; the device must outlive
// it.
class Executor {
 public:
  // Opens and checks the artifact, loads the weights, runs init, prepares every
  // step. All ranks call it; if one cannot load its weights, all fail with its
  // status.
  static absl::StatusOr<std::unique_ptr<Executor>> Load(
      const std::string& path, device::Device& device,
      const LoadOptions& options = {});
  // The same for an artifact that several ranks share.
  static absl::StatusOr<std::unique_ptr<Executor>> Load(
      std::shared_ptr<const program::Artifact> artifact, device::Device& device,
      const LoadOptions& options);

  // What this rank takes and gives: blocks of the model's inputs and outputs.
  const std::vector<TensorSpec>& inputs() const { return inputs_; }
  const std::vector<TensorSpec>& outputs() const { return outputs_; }
  const program::Artifact& artifact() const { return *artifact_; }
  const program::MeshPlace& place() const { return place_; }
  int64_t step_count() const { return main_->step_count(); }
  // Of the matrix products and convolutions of this rank.
  double FlopsPerRun() const;

  // One step: tensors in the order of inputs() and outputs(), whose types and
  // shapes must match. Returns when the outputs are there. Allocates nothing,
  // except staging when memory that is not 64-byte aligned is first seen.
  absl::Status Run(const std::vector<ConstTensor>& inputs,
                   const std::vector<MutableTensor>& outputs);

  // Whether the device has memory of its own, to which inputs can be brought
  // ahead.
  bool LooksAhead() const { return !device_.SharesHostMemory(); }
  // The inputs of the run after the next one, as far as their data is not null:
  // `inputs` is asked while the next run's step runs, and those that are data
  // for the model (program::PortRole) are brought to the device. The run that
  // is given the same memory takes them from there: what is in it must stay as
  // it is until that run is done. Takes memory of the device when first called;
  // where there is too little, now or later, every run brings its inputs
  // itself.
  using NextInputs = std::function<absl::StatusOr<std::vector<ConstTensor>>()>;
  absl::Status Prefetch(NextInputs inputs);
  // Then the error, for people; else empty.
  const std::string& not_ahead() const { return not_ahead_; }

  // Those that this rank's entry names.
  const std::vector<ParameterSpec>& parameters() const { return parameters_; }
  // This rank's block of a parameter, between runs: its value after the last of
  // them. NotFound, or InvalidArgument where the type is not that of the block.
  absl::Status ReadParameter(const std::string& name,
                             const MutableTensor& block);
  // Replaces the block; rows beyond the whole tensor's end must be zero.
  // FailedPrecondition for parameters that are not updated: libraries may have
  // packed them, and other values may be derived from them.
  absl::Status WriteParameter(const std::string& name,
                              const ConstTensor& block);

  MemoryUse Memory() const;
  RankUse Use() const;

  // From now on every step is timed by itself.
  void EnableProfile() {
    profile_ = std::make_unique<Profile>(main_->Labels());
  }
  Profile* profile() { return profile_.get(); }

  // From now on numbers that are not finite are traced; slow.
  // FailedPrecondition where the device keeps memory of its own, or the program
  // does not tell the types of what its steps compute.
  absl::Status EnableNanTrace();
  // The worst numbers of the last run's loss, the output "loss" or else the
  // first one, and of the parameters that it updated; padding does not count.
  NumberKind Outcome() const { return nan_trace_->worst(); }
  // Where numbers as bad as `kind`, the worst Outcome of all ranks, came from.
  // Nothing where this rank does not know.
  std::optional<NonFinite> FindNonFinite(NumberKind kind) const;

 private:
  Executor(std::shared_ptr<const program::Artifact> artifact,
           device::Device& device, const LoadOptions& options);
  absl::Status CheckRanks();
  absl::Status Prepare(const LoadOptions& options);
  void DescribePorts();
  absl::Status LoadData();
  absl::Status LoadWeights(const LoadOptions& options);
  absl::Status RunInit();
  absl::Status BindMain();
  absl::Status MakeStaging();
  absl::Status PlacePort(size_t port, void* host);
  absl::Status GiveInput(size_t index, const ConstTensor& input);
  absl::Status MakeUploads();
  absl::Status EndUploadsIfFull(const absl::Status& status);
  void TraceSources();
  void TraceOutcomes();
  // visit(parameter, its memory, what is in its block) of each that is updated,
  // or of all that are used.
  using VisitParameter = std::function<void(
      const ParameterSpec&, const void* memory, const NanTrace::Look&)>;
  void ForEachParameter(bool updated_only, const VisitParameter& visit) const;
  BoundProgram::Context BindContext(std::function<void(int)> release);

  // Memory that a port uses when the caller's cannot be used directly.
  struct Port {
    device::Allocation staging;
    void* host = nullptr;     // the caller's, in this run
    char* current = nullptr;  // what the steps use
  };

  const std::shared_ptr<const program::Artifact> artifact_;
  device::Device& device_;
  std::unique_ptr<comm::Communicator> own_communicator_;  // of a mesh of one
  comm::Communicator* communicator_;
  comm::DeviceCommunicator* const device_communicator_;
  const program::MeshPlace place_;
  const program::Entry& entry_;  // what this rank runs
  std::vector<TensorSpec> inputs_, outputs_;
  const std::vector<ParameterSpec> parameters_;
  std::unique_ptr<device::Stream> stream_;
  std::unique_ptr<device::Module> module_;
  device::Allocation
      data_copy_;  // of the data section, for devices with memory of their own
  char* data_ = nullptr;
  std::unique_ptr<Weights> weights_;
  device::Allocation arena_;
  std::vector<Port> ports_;           // inputs, then outputs
  std::unique_ptr<Uploads> uploads_;  // null: nothing is prefetched
  std::string not_ahead_;             // not empty: nothing ever will be
  NextInputs next_inputs_;            // of the run after the next one
  std::unique_ptr<BoundProgram> main_;
  std::unique_ptr<Profile> profile_;
  std::unique_ptr<NanTrace> nan_trace_;
};

}  // namespace partita::executor

#endif  // PARTITA_RUNTIME_EXECUTOR_EXECUTOR_H_
