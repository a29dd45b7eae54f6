// The training loop: next batch, one run of the program, log, checkpoint.
#ifndef PARTITA_RUNTIME_TRAIN_TRAINER_H_
#define PARTITA_RUNTIME_TRAIN_TRAINER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/tensor.h"
#include "runtime/data/batch_source.h"
#include "runtime/program/program_generated.h"
#include "runtime/train/record.h"
#include "runtime/train/schedule.h"

namespace partita::train {

// A loaded training program. Run executes one step and updates the parameters.
class Stepper {
 public:
  virtual ~Stepper() = default;

  // Specs of whole tensors.
  virtual const std::vector<base::TensorSpec>& inputs() const = 0;
  virtual const std::vector<base::TensorSpec>& outputs() const = 0;
  virtual program::PortRole RoleOf(size_t input) const = 0;
  virtual absl::Status Run(const std::vector<base::ConstTensor>& inputs,
                           const std::vector<base::MutableTensor>& outputs) = 0;
  // True if prefetching batches pays; the same in all processes.
  virtual bool LooksAhead() const { return false; }
  // Prefetches inputs of the run after the next one; skips tensors without
  // data. The memory must not change until that run is done.
  virtual absl::Status Prefetch(const std::vector<base::ConstTensor>& inputs) {
    return absl::OkStatus();
  }

  // The following functions matter if several processes take part.
  // True if this process has the outputs.
  virtual bool IsMain() const { return true; }
  // Returns an error of any process in all processes.
  virtual absl::Status Agree(const absl::Status& status) { return status; }
  // Sets each value to its maximum over all processes.
  virtual absl::Status Max(std::vector<double>& values) {
    return absl::OkStatus();
  }
};

// Saves a run. All processes make the same calls.
class Checkpoints {
 public:
  virtual ~Checkpoints() = default;

  // Saves the parameters after `step`, and the position of the data. May write
  // in the background. Returns the same status in all processes; an error may
  // be that of an earlier save.
  virtual absl::Status Save(int64_t step, const std::string& data_state) = 0;
  // Waits until everything is written.
  virtual absl::Status Finish() = 0;
};

struct TrainerOptions {
  int64_t last_step = 0;  // of an earlier session; 0: none
  int64_t steps = 1;      // the run ends after this step
  Schedule schedule;
  // Inputs with the role seed get a value computed from this and the step.
  int64_t seed = 0;
  // Each step returns the loss and scalars of the step this many steps before,
  // as pipelines without a flush do. The first steps of a run have neither loss
  // nor scalars.
  int64_t late_losses = 0;
  Checkpoints* checkpoints = nullptr;
  int64_t checkpoint_every = 0;  // steps; 0: only at the end
  // Called after every step, before its checkpoint; may change parameters. An
  // error ends the run. Null: nothing to do.
  std::function<absl::Status(int64_t step)> after_step;
  // Called after every step: returns true to end the run. Null: never.
  std::function<bool()> stop;
  // Reports urgent messages to the user.
  std::function<void(const std::string&)> say;
  std::vector<Observer*> observers;
};

struct TrainResult {
  // One per step of this session, in the main process; NaN: not known yet.
  std::vector<double> losses;
  double seconds = 0;  // of its steps
  int64_t last_step = 0;
  enum class End { kSteps, kStopped, kData } end = End::kSteps;
};

// Index of the loss: the output "loss", else the first output.
// FailedPrecondition if it is not a single floating-point number: the program
// is no training step.
absl::StatusOr<size_t> FindLoss(const std::vector<base::TensorSpec>& outputs);

// The data inputs, in order; `source` must provide them.
std::vector<base::TensorSpec> DataInputs(const Stepper& stepper);

// Values of a step's inputs that are not data.
struct StepValues {
  float rate = 0;
  int64_t step = 0;  // counted from 1
  int64_t seed = 0;  // of this step
};
// Values for step `step` of a run with the seed `run_seed`.
StepValues ValuesOfStep(double rate, int64_t step, int64_t run_seed);

// A step's inputs in the program's order: `data` in order, and `values`, which
// must outlive the result. If `values` is null, inputs other than data have
// null data.
std::vector<base::ConstTensor> StepInputs(
    const Stepper& stepper, const std::vector<base::ConstTensor>& data,
    const StepValues* values);

// A record with the number of examples (rows of the first input) and of tokens
// (elements of the first input of integers [rows, length > 1]).
StepRecord CountBatch(const std::vector<base::TensorSpec>& data);

// Runs steps last_step + 1 to steps. The source must be positioned at the first
// of them. A non-finite loss is an error that names the step, but ends a range
// test that has had a finite loss, without a last checkpoint. An error of the
// program or the data names the step, too. A failed observer or periodic
// checkpoint is reported, and the run continues; the last checkpoint must
// succeed. Ends early, with a checkpoint, if any process is asked to stop or
// the data ends.
absl::StatusOr<TrainResult> Train(Stepper& stepper, data::BatchSource& source,
                                  const TrainerOptions& options);

}  // namespace partita::train

#endif  // PARTITA_RUNTIME_TRAIN_TRAINER_H_
