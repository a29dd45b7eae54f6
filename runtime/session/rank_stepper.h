// Adapts a group of ranks to the training loop.
#ifndef PARTITA_RUNTIME_SESSION_RANK_STEPPER_H_
#define PARTITA_RUNTIME_SESSION_RANK_STEPPER_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "runtime/session/open_ranks.h"
#include "runtime/train/trainer.h"

namespace partita::session {

class RankStepper : public train::Stepper {
 public:
  // The ranks must outlive this object. `traced`: non-finite numbers make the
  // step fail with an error that says which operation made them. `say` reports
  // to the user from any process.
  RankStepper(executor::RankGroup& ranks, bool traced,
              std::function<void(const std::string&)> say)
      : ranks_(ranks), traced_(traced), say_(std::move(say)) {}

  const std::vector<base::TensorSpec>& inputs() const override {
    return ranks_.inputs();
  }
  const std::vector<base::TensorSpec>& outputs() const override {
    return ranks_.outputs();
  }
  program::PortRole RoleOf(size_t input) const override;
  absl::Status Run(const std::vector<base::ConstTensor>& inputs,
                   const std::vector<base::MutableTensor>& outputs) override;
  bool LooksAhead() const override { return ranks_.LooksAhead(); }
  absl::Status Prefetch(const std::vector<base::ConstTensor>& inputs) override {
    ranks_.Prefetch(inputs);
    return absl::OkStatus();
  }
  bool IsMain() const override { return ranks_.IsMain(); }
  absl::Status Agree(const absl::Status& status) override {
    return ranks_.Agree(status);
  }
  absl::Status Max(std::vector<double>& values) override {
    return ranks_.Max(values);
  }

 private:
  void SayOnceIfNotAhead();

  executor::RankGroup& ranks_;
  const bool traced_;
  const std::function<void(const std::string&)> say_;
  bool said_not_ahead_ = false;
};

// FailedPrecondition unless the program is a training step, and the only one of
// its optimizer.
absl::Status CheckTrains(const executor::RankGroup& ranks);

// Number of steps between a step and its loss: 0, except in pipelines without a
// flush.
int64_t LateLosses(const program::Program& program);

}  // namespace partita::session

#endif  // PARTITA_RUNTIME_SESSION_RANK_STEPPER_H_
