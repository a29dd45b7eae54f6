// Estimates the gradient noise scale, which predicts the critical batch size:
// smaller batches waste steps, larger ones waste examples (McCandlish et al.,
// "An Empirical Model of Large-Batch Training", 2018).
#ifndef PARTITA_RUNTIME_TRAIN_NOISE_SCALE_H_
#define PARTITA_RUNTIME_TRAIN_NOISE_SCALE_H_

#include <cstdint>
#include <optional>

#include "runtime/train/record.h"

namespace partita::train {

// Observes the scalars gradient_noise and gradient_signal of a program compiled
// with --noise-scale. Each is averaged over steps, with 0.99 of the past, since
// the ratio of two noisy numbers of one step has a bias.
class NoiseScale : public Observer {
 public:
  absl::Status OnStep(const StepRecord& record) override;

  // tr(covariance of an example's gradient) / |gradient|^2, in examples.
  // Nothing if the program does not measure it, or if the averages are not
  // positive, as noise alone makes them.
  std::optional<double> Examples() const;
  // True if the program measures the noise.
  bool Measured() const { return steps_ > 0; }

 private:
  double noise_ = 0, signal_ = 0;
  int64_t examples_ = 0, steps_ = 0;
};

}  // namespace partita::train

#endif  // PARTITA_RUNTIME_TRAIN_NOISE_SCALE_H_
