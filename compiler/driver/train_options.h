// Options of a training step, as on the command line.
#ifndef PARTITA_COMPILER_DRIVER_TRAIN_OPTIONS_H_
#define PARTITA_COMPILER_DRIVER_TRAIN_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/plan/plan.h"

namespace partita::driver {

// compiler/autodiff/passes.td defines and checks these values.
struct TrainOptions {
  std::string optimizer;  // sgd, adam, adamw, lamb, adafactor, 1bit-adam,
                          // 1bit-lamb, 0/1-adam; empty: no training
  std::string loss = "cross-entropy";
  std::string loss_output;  // empty: the first output
  int64_t ignore_index = -100;
  double label_smoothing = 0;
  std::string trained = "*";  // globs, separated by ';'
  std::string no_decay;       // globs
  std::string lr_scale;       // GLOB=FACTOR, separated by ';'
  std::string keep_zeros;     // globs of pruned matrices
  bool nesterov = false;      // of sgd
  // Used if the plan has no rules. The last match wins; empty: selective.
  std::vector<plan::Recompute> recompute;
  std::string recompute_origin = "--recompute";  // for messages
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, momentum = 0,
         weight_decay = 0.01, clip_norm = 0;
  double loss_scale = 65536;  // the initial one, in f16
  bool keep_gradients = false;
  bool noise_scale = false;  // measure the noise of gradients
  int onebit_warmup = 0;     // 1-bit optimizers: warm-up steps already run
  // Step of 0/1-adam: variance, exchange or local; partita compile makes all.
  std::string zero_one_step = "exchange";
  int64_t pipemare = 0;  // updates with lower rates for old weights
  // Share of an update that is left in the average that corrects old weights,
  // after as many updates as the weights are old. 0: gradients use the old
  // weights.
  double pipemare_correction = 0;
  int64_t microbatches = 1;  // the plan's
  // Only the first microbatch of a step, for trials that measure one.
  bool first_microbatch = false;
  // Attention returns its log-sum-exp to its gradient, which rings and GPUs
  // need.
  bool keep_lse = false;
};

// True for an optimizer with several kinds of steps.
inline bool isZeroOne(const TrainOptions& train) {
  return train.optimizer == "0/1-adam";
}

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_TRAIN_OPTIONS_H_
