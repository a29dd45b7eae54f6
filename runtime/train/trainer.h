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

// A loaded training program: Run is one step and updates its parameters.
class Stepper {
 public:
  virtual ~Stepper() = default;

  // Whole tensors.
  virtual const std::vector<base::TensorSpec>& inputs() const = 0;
  virtual const std::vector<base::TensorSpec>& outputs() const = 0;
  virtual program::PortRole RoleOf(size_t input) const = 0;
  virtual absl::Status Run(const std::vector<base::ConstTensor>& inputs,
                           const std::vector<base::MutableTensor>& outputs) = 0;
  // Whether it makes use of batches that are known ahead; alike in all
  // processes.
  virtual bool LooksAhead() const { return false; }
  // The next run but one gets these, as far as their data is not null, in
  // memory that stays as it is until that run is done.
  virtual absl::Status Prefetch(const std::vector<base::ConstTensor>& inputs) {
    return absl::OkStatus();
  }

  // What follows matters where other processes take part.
  // Whether this process has the outputs.
  virtual bool IsMain() const { return true; }
  // An error of any process becomes everybody's.
  virtual absl::Status Agree(const absl::Status& status) { return status; }
  // Each value becomes the greatest of all processes.
  virtual absl::Status Max(std::vector<double>& values) {
    return absl::OkStatus();
  }
};

// Where a run is saved. All processes call it alike.
class Checkpoints {
 public:
  virtual ~Checkpoints() = default;

  // The parameters as `step` left them, and the position of the data. May write
  // in the background; an error may be that of an earlier one, and is the same
  // in all processes.
  virtual absl::Status Save(int64_t step, const std::string& data_state) = 0;
  // Until everything is written.
  virtual absl::Status Finish() = 0;
};

struct TrainerOptions {
  int64_t last_step = 0;  // of an earlier session; 0: none
  int64_t steps = 1;      // the run ends after this step
  Schedule schedule;
  int64_t seed =
      0;  // what inputs with this role get follows from it and the step
  // The program tells in a step what the step this many before was to compute,
  // as pipelines without a flush do: a run's first steps have neither loss nor
  // scalars.
  int64_t late_losses = 0;
  Checkpoints* checkpoints = nullptr;
  int64_t checkpoint_every = 0;  // steps; 0: only at the end
  // Asked after every step: whether to end now. Null: never.
  std::function<bool()> stop;
  // For what people should know at once.
  std::function<void(const std::string&)> say;
  std::vector<Observer*> observers;
};

struct TrainResult {
  // Of this session, in the main process; NaN: not told yet.
  std::vector<double> losses;
  double seconds = 0;  // of its steps
  int64_t last_step = 0;
  enum class End { kSteps, kStopped, kData } end = End::kSteps;
};

// FailedPrecondition where the program is no training step: it has no loss, the
// output "loss" or else the first one, a floating-point number.
absl::StatusOr<size_t> FindLoss(const std::vector<base::TensorSpec>& outputs);

// The inputs that are data, in order: what `source` must give.
std::vector<base::TensorSpec> DataInputs(const Stepper& stepper);

// The inputs of a step that are not data.
struct StepValues {
  float rate = 0;
  int64_t step = 0;  // counted from 1
  int64_t seed = 0;  // of this step
};
// Of step `step` in a run with the seed `run_seed`.
StepValues ValuesOfStep(double rate, int64_t step, int64_t run_seed);

// A step's inputs in the program's order: `data` in order, and `values`, which
// must outlive the result. Null `values`: inputs other than data are null.
std::vector<base::ConstTensor> StepInputs(
    const Stepper& stepper, const std::vector<base::ConstTensor>& data,
    const StepValues* values);

// A record with the numbers of examples, the rows of the first input, and of
// tokens: the elements of the first one of integers [rows, length > 1].
StepRecord CountBatch(const std::vector<base::TensorSpec>& data);

// Runs steps last_step + 1 to steps. The source stands where they begin. A loss
// that is not finite is an error that names the step; so is one of the program
// or the data. An observer or a periodic checkpoint that fails is told, and the
// run goes on; the last checkpoint must succeed. Ends early, with a checkpoint,
// when any process is asked to stop or the data ends.
absl::StatusOr<TrainResult> Train(Stepper& stepper, data::BatchSource& source,
                                  const TrainerOptions& options);

}  // namespace partita::train

#endif  // PARTITA_RUNTIME_TRAIN_TRAINER_H_
