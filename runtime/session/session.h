// A loaded model, wherever its devices are: in this thread, in threads of this
// process, or in processes of which this is one.
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

  // Whole tensors.
  virtual const std::vector<executor::TensorSpec>& inputs() const = 0;
  virtual const std::vector<executor::TensorSpec>& outputs() const = 0;
  virtual int64_t step_count() const = 0;
  virtual int devices() const = 0;
  virtual void EnableProfile() = 0;
  // Of the first device of this process in each entry it has one of; empty
  // before.
  virtual std::vector<executor::Profile*> profiles() = 0;

  virtual absl::Status Run(
      const std::vector<executor::ConstTensor>& inputs,
      const std::vector<executor::MutableTensor>& outputs) = 0;

  // Whether inputs are worth being known ahead; alike in all processes.
  virtual bool LooksAhead() const { return false; }
  // Inputs of the run after the next one, as far as their data is not null; the
  // memory must stay as it is until that run is done. An error of it may be the
  // next run's.
  virtual absl::Status Prefetch(
      const std::vector<executor::ConstTensor>& inputs) {
    return absl::OkStatus();
  }

  // Why inputs are not brought to the devices of this process ahead any more
  // (executor::Executor::not_ahead); empty where they are.
  virtual std::string NotAhead() const { return ""; }

  // As executor::Executor's, of all devices.
  virtual absl::Status EnableNanTrace() = 0;
  // After a run, in all processes alike: what made numbers that are not finite,
  // of which an error tells. Ok where all that matter are.
  virtual absl::Status CheckFinite() = 0;

  virtual const program::Program& program() const = 0;
  // Of the matrix products and convolutions of a run, on all devices.
  virtual double FlopsPerRun() const = 0;

  // Parameters, between runs.
  virtual const std::vector<executor::ParameterSpec>& parameters() const = 0;
  // What elements of an input have to be below; 0: anything.
  int64_t LimitOf(const std::string& input) const;

  // What this process has of a parameter, of which it writes the runs into
  // checkpoints; other processes have the others.
  struct Part {
    struct Run {
      int64_t whole = 0;  // elements, in the whole tensor and in the part
      int64_t part = 0;
      int64_t count = 0;
    };
    std::vector<Run> runs;
    executor::TensorSpec spec;
  };
  virtual Part PartOf(const executor::ParameterSpec& parameter) const;
  virtual absl::Status ReadPart(const Part& part, void* memory) = 0;
  // Of updated parameters, on all devices of this process.
  virtual absl::Status WriteParameter(const std::string& name,
                                      const executor::ConstTensor& whole) = 0;

  // What follows matters where other processes take part.
  // Whether this process has the outputs and reports; others pass outputs
  // without data.
  virtual bool IsMain() const { return true; }
  virtual int rank() const { return 0; }
  virtual int processes() const { return 1; }
  // The rows of data inputs that this process reads; none at all, [0, 0), where
  // that cannot be told, and all must be there.
  virtual program::Rows InputRows() const;
  // All wait for each other.
  virtual absl::Status Align() { return absl::OkStatus(); }
  // An error of any process becomes everybody's.
  virtual absl::Status Agree(const absl::Status& status) { return status; }
  // Each value becomes the greatest of all processes.
  virtual absl::Status Max(std::vector<double>& values) {
    return absl::OkStatus();
  }
  // What every device does, in order.
  virtual absl::StatusOr<std::vector<executor::RankUse>> Uses() = 0;
  // Brings outputs of one element to the main process.
  virtual absl::Status GatherNumbers(
      const std::vector<executor::MutableTensor>& outputs) {
    return absl::OkStatus();
  }
  // Brings outputs together, and makes times those of the slowest.
  virtual absl::Status Complete(
      const std::vector<executor::MutableTensor>& outputs,
      std::vector<double>& times_ms) {
    return absl::OkStatus();
  }
};

// Of the device that holds most.
executor::MemoryUse FullestOf(const std::vector<executor::RankUse>& uses);

// A list of `profile`, or none where it is null.
std::vector<executor::Profile*> OneIfThere(executor::Profile* profile);

// How long ranks wait for each other.
comm::CommOptions CommOptionsOf(const SessionOptions& options);

// FailedPrecondition where there are not as many processes as the model's mesh
// has devices: what was expected, what was found, what to do.
absl::Status CheckProcesses(const program::Artifact& artifact,
                            const SessionOptions& options,
                            const comm::Launch& launch);

// In this process: without a mesh in this thread, else in one thread per
// device.
absl::StatusOr<std::unique_ptr<Session>> OpenSession(
    const SessionOptions& options);

// This process is one rank. `world` must outlive the session. Where the error
// is known to all, it is the communicator's agreed().
absl::StatusOr<std::unique_ptr<Session>> OpenProcessSession(
    const SessionOptions& options, const comm::Launch& launch,
    comm::Communicator& communicator);

}  // namespace partita::session

#endif  // PARTITA_RUNTIME_SESSION_SESSION_H_
