// Every process runs the same loop on the same batches. Processes without
// outputs learn from the others what to do next.
#include "runtime/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/dtype.h"
#include "runtime/base/random_fill.h"
#include "runtime/base/status_macros.h"

namespace partita::train {
namespace {

using base::ConstTensor;
using base::MutableTensor;
using base::TensorSpec;
using program::PortRole;
using Clock = std::chrono::steady_clock;

bool IsNumber(const TensorSpec& spec) {
  return base::IsFloat(spec.dtype) && base::ElementCount(spec.shape) == 1;
}

class Loop {
 public:
  Loop(Stepper& stepper, data::BatchSource& source,
       const TrainerOptions& options)
      : stepper_(stepper), source_(source), options_(options) {}

  absl::StatusOr<TrainResult> Run() {
    PARTITA_RETURN_IF_ERROR(stepper_.Agree(Prepare()));
    result_.last_step = saved_ = options_.last_step;
    while (result_.last_step < options_.steps) {
      bool ended = false;
      PARTITA_RETURN_IF_ERROR(Step(result_.last_step + 1, ended));
      if (ended) break;
    }
    PARTITA_RETURN_IF_ERROR(SaveLast());
    return std::move(result_);
  }

 private:
  absl::Status Prepare() {
    PARTITA_RETURN_IF_ERROR(CheckSchedule(options_.schedule));
    PARTITA_ASSIGN_OR_RETURN(loss_, FindLoss(stepper_.outputs()));
    const std::vector<TensorSpec> data = DataInputs(stepper_);
    PARTITA_ASSIGN_OR_RETURN(batch_.memory, data::Batch::Allocate(data));
    if (stepper_.LooksAhead()) {
      PARTITA_ASSIGN_OR_RETURN(next_.memory, data::Batch::Allocate(data));
    }
    counts_ = CountBatch(data);
    const bool main = stepper_.IsMain();
    PARTITA_ASSIGN_OR_RETURN(
        results_, data::Batch::Allocate(main ? stepper_.outputs()
                                             : std::vector<TensorSpec>()));
    for (size_t i = 0; i < stepper_.outputs().size(); ++i) {
      const TensorSpec& spec = stepper_.outputs()[i];
      outputs_.push_back(
          {spec.dtype, spec.shape, main ? results_.data(i) : nullptr});
    }
    return absl::OkStatus();
  }

  // A batch, its status, and the position of the data after it.
  struct Taken {
    data::Batch memory;
    absl::Status status;
    std::string state;
  };
  void Take(Taken& batch) {
    batch.status = source_.Next(batch.memory);
    batch.state = source_.State();
  }
  // Takes the batch of this step, and prefetches the next one if that pays.
  absl::Status TakeBatch(int64_t step) {
    const bool ahead = stepper_.LooksAhead();
    if (ahead && is_taken_) {
      std::swap(batch_, next_);
    } else {
      Take(batch_);
    }
    is_taken_ = ahead && batch_.status.ok() && step < options_.steps;
    absl::Status status = batch_.status;
    if (is_taken_) {
      Take(next_);
      if (next_.status.ok())
        status = stepper_.Prefetch(
            StepInputs(stepper_, next_.memory.tensors(), nullptr));
    }
    // After all work that may take long or fail in a single process.
    return stepper_.Agree(status);
  }

  absl::Status Step(int64_t step, bool& ended) {
    const Clock::time_point begin = Clock::now();
    const absl::Status next = TakeBatch(step);
    if (absl::IsOutOfRange(next)) {
      result_.end = TrainResult::End::kData;
      ended = true;
      Say(absl::StrCat("the data ended after step ", step - 1, " of ",
                       options_.steps));
      return absl::OkStatus();
    }
    PARTITA_RETURN_IF_ERROR(next);
    StepRecord record = counts_;
    record.step = step;
    record.rate = LearningRate(options_.schedule, step);
    values_ = ValuesOfStep(record.rate, step, options_.seed);
    const absl::Status run = stepper_.Run(
        StepInputs(stepper_, batch_.memory.tensors(), &values_), outputs_);
    if (!run.ok())
      return absl::Status(run.code(),
                          absl::StrCat("step ", step, ": ", run.message()));
    record.seconds =
        std::chrono::duration<double>(Clock::now() - begin).count();
    result_.seconds += record.seconds;
    PARTITA_RETURN_IF_ERROR(stepper_.Agree(Note(record)));
    if (options_.after_step)
      PARTITA_RETURN_IF_ERROR(stepper_.Agree(options_.after_step(step)));
    result_.last_step = step;
    std::vector<double> stop = {options_.stop && options_.stop() ? 1.0 : 0.0,
                                is_ruined_ ? 1.0 : 0.0};
    PARTITA_RETURN_IF_ERROR(stepper_.Max(stop));
    is_ruined_ = stop[1] > 0;
    ended = (stop[0] > 0 || is_ruined_) && step < options_.steps;
    if (ended) result_.end = TrainResult::End::kStopped;
    if (!ended && options_.checkpoint_every > 0 && step < options_.steps &&
        step % options_.checkpoint_every == 0)
      SaveNow(step);
    return absl::OkStatus();
  }

  // In the process with the outputs: takes the loss and calls the observers.
  absl::Status Note(StepRecord& record) {
    if (!stepper_.IsMain()) return absl::OkStatus();
    const bool is_late = record.step <= options_.late_losses;
    if (is_late) record.loss = std::numeric_limits<double>::quiet_NaN();
    for (size_t i = 0; i < outputs_.size() && !is_late; ++i) {
      const TensorSpec& spec = stepper_.outputs()[i];
      if (base::ElementCount(spec.shape) != 1) continue;
      const double value =
          base::ElementAsDouble(spec.dtype, outputs_[i].data, 0);
      if (i == loss_) {
        record.loss = value;
      } else {
        record.scalars.emplace_back(spec.name, value);
      }
    }
    result_.losses.push_back(record.loss);
    for (size_t i = 0; i < options_.observers.size(); ++i) {
      const absl::Status status = options_.observers[i]->OnStep(record);
      failing_.resize(options_.observers.size());
      if (!status.ok() && !failing_[i])
        Say(absl::StrCat(status.message(), "; training goes on"));
      failing_[i] = !status.ok();
    }
    if (is_late || std::isfinite(record.loss)) return absl::OkStatus();
    if (IsRangeTest(options_.schedule.kind) && HasFiniteLoss()) {
      is_ruined_ = true;
      return absl::OkStatus();
    }
    return absl::FailedPreconditionError(absl::StrFormat(
        "step %d: the loss is %g (%s; learning rate %g); lower the learning "
        "rate, warm up for longer, or clip gradients; with --debug-nan the "
        "same run says which operation made the first such number%s",
        record.step, record.loss,
        result_.losses.size() > 1 &&
                std::isfinite(result_.losses[result_.losses.size() - 2])
            ? absl::StrFormat("%.6g in the step before",
                              result_.losses[result_.losses.size() - 2])
            : "it is the first loss of this session",
        record.rate,
        saved_ > 0
            ? absl::StrFormat("; the last checkpoint is of step %d", saved_)
            : ""));
  }

  bool HasFiniteLoss() const {
    return std::any_of(result_.losses.begin(), result_.losses.end(),
                       [](double loss) { return std::isfinite(loss); });
  }

  void SaveNow(int64_t step) {
    if (options_.checkpoints == nullptr) return;
    const absl::Status status = options_.checkpoints->Save(step, batch_.state);
    if (status.ok()) {
      saved_ = step;
    } else {
      Say(absl::StrCat(status.message(),
                       "; training goes on, the checkpoint "
                       "before stays"));
    }
  }

  absl::Status SaveLast() {
    if (options_.checkpoints == nullptr) return absl::OkStatus();
    if (saved_ < result_.last_step && !is_ruined_)
      PARTITA_RETURN_IF_ERROR(
          options_.checkpoints->Save(result_.last_step, batch_.state));
    return options_.checkpoints->Finish();
  }

  void Say(const std::string& text) const {
    if (options_.say && stepper_.IsMain()) options_.say(text);
  }

  Stepper& stepper_;
  data::BatchSource& source_;
  const TrainerOptions& options_;
  TrainResult result_;
  size_t loss_ = 0;
  Taken batch_, next_;
  bool is_taken_ = false;  // next_ holds a batch
  data::Batch results_;
  std::vector<MutableTensor> outputs_;
  StepRecord counts_;
  // By observer, so that each failure is reported once.
  std::vector<bool> failing_;
  int64_t saved_ = 0;
  // The loss of a range test is not finite; the same in all processes.
  bool is_ruined_ = false;
  StepValues values_;
};

}  // namespace

absl::StatusOr<size_t> FindLoss(const std::vector<TensorSpec>& outputs) {
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].name == "loss" && IsNumber(outputs[i])) return i;
  if (!outputs.empty() && IsNumber(outputs[0])) return size_t{0};
  return absl::FailedPreconditionError(absl::StrCat(
      "expected a training step, with a loss (one floating-point number) as "
      "its first output, found ",
      outputs.empty()
          ? "no outputs"
          : absl::StrCat("'", outputs[0].name, "' of ",
                         base::TypeName(outputs[0].dtype, outputs[0].shape)),
      "; compile the model with --train"));
}

StepValues ValuesOfStep(double rate, int64_t step, int64_t run_seed) {
  return {static_cast<float>(rate), step,
          static_cast<int64_t>(base::RandomWord(static_cast<uint64_t>(run_seed),
                                                static_cast<uint64_t>(step)))};
}

std::vector<ConstTensor> StepInputs(const Stepper& stepper,
                                    const std::vector<ConstTensor>& data,
                                    const StepValues* values) {
  std::vector<ConstTensor> inputs;
  size_t next = 0;
  for (size_t i = 0; i < stepper.inputs().size(); ++i) {
    const TensorSpec& spec = stepper.inputs()[i];
    const void* value = nullptr;
    switch (stepper.RoleOf(i)) {
      case PortRole::data:
        value = data[next++].data;
        break;
      case PortRole::learning_rate:
        value = values ? &values->rate : nullptr;
        break;
      case PortRole::step:
        value = values ? &values->step : nullptr;
        break;
      case PortRole::seed:
        value = values ? &values->seed : nullptr;
        break;
    }
    inputs.push_back({spec.dtype, spec.shape, value});
  }
  return inputs;
}

std::vector<TensorSpec> DataInputs(const Stepper& stepper) {
  std::vector<TensorSpec> data;
  for (size_t i = 0; i < stepper.inputs().size(); ++i)
    if (stepper.RoleOf(i) == PortRole::data)
      data.push_back(stepper.inputs()[i]);
  return data;
}

StepRecord CountBatch(const std::vector<TensorSpec>& data) {
  StepRecord record;
  for (const TensorSpec& spec : data) {
    if (spec.shape.empty()) continue;
    if (record.examples == 0) record.examples = spec.shape[0];
    if (record.tokens == 0 && spec.shape.size() == 2 && spec.shape[1] > 1 &&
        !base::IsFloat(spec.dtype))
      record.tokens = spec.shape[0] * spec.shape[1];
  }
  return record;
}

absl::StatusOr<TrainResult> Train(Stepper& stepper, data::BatchSource& source,
                                  const TrainerOptions& options) {
  return Loop(stepper, source, options).Run();
}

}  // namespace partita::train
