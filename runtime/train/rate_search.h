// Finds a learning rate from the losses of a range test.
#ifndef PARTITA_RUNTIME_TRAIN_RATE_SEARCH_H_
#define PARTITA_RUNTIME_TRAIN_RATE_SEARCH_H_

#include <optional>
#include <vector>

#include "runtime/train/record.h"

namespace partita::train {

// Observes a run whose rates rise (Smith, 2015). Losses are smoothed by a
// moving average with 0.98 of the past, without the bias of its beginning, as
// in fastai and Lightning.
class RateSearch : public Observer {
 public:
  absl::Status OnStep(const StepRecord& record) override;

  // True once the smoothed loss is above four times its minimum, or the loss is
  // not finite after a loss that was: higher rates show nothing more.
  bool Diverged() const { return diverged_; }
  // The rate at which the smoothed loss falls fastest per step, without the
  // first ten steps and the last. Steps without a finite loss do not count.
  // Nothing if fewer than two steps remain.
  std::optional<double> SuggestRate() const;

 private:
  double average_ = 0, share_of_start_ = 1, best_ = 0;
  bool diverged_ = false;
  std::vector<double> rates_, smoothed_;
};

}  // namespace partita::train

#endif  // PARTITA_RUNTIME_TRAIN_RATE_SEARCH_H_
