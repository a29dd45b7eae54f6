// A loaded model. Its devices are in this thread, in threads of this process,
// or in several processes including this one.
#ifndef PARTITA_RUNTIME_SESSION_SESSION_H_
#define PARTITA_RUNTIME_SESSION_SESSION_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/launch.h"
#include "runtime/device/device.h"
#include "runtime/executor/executor.h"
#include "runtime/executor/tensor.h"
#include "runtime/program/artifact.h"
#include "runtime/program/mesh.h"
#include "runtime/session/options.h"

namespace partita::session {

class Session {
 public:
  virtual ~Session() = default;

  // Specs of whole tensors.
  virtual const std::vector<executor::TensorSpec>& inputs() const = 0;
  virtual const std::vector<executor::TensorSpec>& outputs() const = 0;
  virtual int64_t step_count() const = 0;
  virtual int devices() const = 0;
  virtual void EnableProfile() = 0;
  // Profiles of this process's first device in each entry; empty before
  // EnableProfile.
  virtual std::vector<executor::Profile*> profiles() = 0;

  virtual absl::Status Run(
      const std::vector<executor::ConstTensor>& inputs,
      const std::vector<executor::MutableTensor>& outputs) = 0;

  // True if prefetching inputs pays; the same in all processes.
  virtual bool LooksAhead() const { return false; }
  // Prefetches inputs of the run after the next one; skips tensors without
  // data. The memory must not change until that run is done. An error may be
  // returned by the next run.
  virtual absl::Status Prefetch(
      const std::vector<executor::ConstTensor>& inputs) {
    return absl::OkStatus();
  }

  // The error that switched prefetching off on this process's devices
  // (executor::Executor::not_ahead); empty if prefetching works.
  virtual std::string NotAhead() const { return ""; }

  // Same as executor::Executor::EnableNanTrace, for all devices.
  virtual absl::Status EnableNanTrace() = 0;
  // After a run: returns an error that says which step made non-finite numbers,
  // the same in all processes. OK if all outcomes are finite.
  virtual absl::Status CheckFinite() = 0;

  virtual const program::Program& program() const = 0;
  // FLOPs of a run's matrix products and convolutions, over all devices.
  virtual double FlopsPerRun() const = 0;

  // Parameters, accessible between runs.
  virtual const std::vector<executor::ParameterSpec>& parameters() const = 0;
  // Exclusive upper bound for the elements of an input; 0: none.
  int64_t LimitOf(const std::string& input) const;

  // This process's part of a parameter. A checkpoint gets `runs` from this
  // process, and all other elements from other processes.
  struct Part {
    struct Run {
      // First element in the whole tensor and in the part, and number of
      // elements.
      int64_t whole = 0;
      int64_t part = 0;
      int64_t count = 0;
    };
    std::vector<Run> runs;
    executor::TensorSpec spec;
  };
  virtual Part PartOf(const executor::ParameterSpec& parameter) const;
  virtual absl::Status ReadPart(const Part& part, void* memory) = 0;
  // Sets an updated parameter on all devices of this process.
  virtual absl::Status WriteParameter(const std::string& name,
                                      const executor::ConstTensor& whole) = 0;

  // The following functions matter if several processes take part.
  // True if this process has the outputs and reports; others pass outputs
  // without data.
  virtual bool IsMain() const { return true; }
  virtual int rank() const { return 0; }
  virtual int processes() const { return 1; }
  // Rows of data inputs that this process reads. Empty, [0, 0), if they cannot
  // be told: then all rows must be present.
  virtual program::Rows InputRows() const;
  // Waits for all processes.
  virtual absl::Status Align() { return absl::OkStatus(); }
  // Returns an error of any process in all processes.
  virtual absl::Status Agree(const absl::Status& status) { return status; }
  // Sets each value to its maximum over all processes.
  virtual absl::Status Max(std::vector<double>& values) {
    return absl::OkStatus();
  }
  // Work and memory of every device, in order.
  virtual absl::StatusOr<std::vector<executor::RankUse>> Uses() = 0;
  // Gathers outputs of one element on the main process.
  virtual absl::Status GatherNumbers(
      const std::vector<executor::MutableTensor>& outputs) {
    return absl::OkStatus();
  }
  // Gathers outputs on the main process, and sets each time to that of the
  // slowest process.
  virtual absl::Status Complete(
      const std::vector<executor::MutableTensor>& outputs,
      std::vector<double>& times_ms) {
    return absl::OkStatus();
  }
};

// Memory of the device that holds most.
executor::MemoryUse FullestOf(const std::vector<executor::RankUse>& uses);

// A list of `profile`; empty if it is null.
std::vector<executor::Profile*> OneIfThere(executor::Profile* profile);

// Communicator options, with the timeout of `options`.
comm::CommOptions CommOptionsOf(const SessionOptions& options);

// FailedPrecondition if the number of processes differs from the number of
// devices of the model's mesh; the message says what to do.
absl::Status CheckProcesses(const program::Artifact& artifact,
                            const SessionOptions& options,
                            const comm::Launch& launch);

// Opens a model in this process: in this thread without a mesh, else with one
// thread per device.
absl::StatusOr<std::unique_ptr<Session>> OpenSession(
    const SessionOptions& options);

// Opens a model as one rank of a job. `world` must outlive the session. If an
// error is known to all ranks, the communicator is agreed().
absl::StatusOr<std::unique_ptr<Session>> OpenProcessSession(
    const SessionOptions& options, const comm::Launch& launch,
    comm::Communicator& communicator);

}  // namespace partita::session

#endif  // PARTITA_RUNTIME_SESSION_SESSION_H_
