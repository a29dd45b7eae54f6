// What a training step is made of, as users say it on the command line.
#ifndef PARTITA_COMPILER_DRIVER_TRAIN_OPTIONS_H_
#define PARTITA_COMPILER_DRIVER_TRAIN_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/plan/plan.h"

namespace partita::driver {

// The words are those of compiler/autodiff/passes.td, which checks them.
struct TrainOptions {
  std::string optimizer;  // sgd, adam, adamw, lamb, adafactor, 1bit-adam,
                          // 1bit-lamb; empty: no training
  std::string loss = "cross-entropy";
  std::string loss_output;  // empty: the first output
  int64_t ignore_index = -100;
  double label_smoothing = 0;
  std::string trained = "*";  // globs, separated by ';'
  std::string no_decay;       // globs
  std::string lr_scale;       // GLOB=FACTOR, separated by ';'
  bool nesterov = false;      // of sgd
  // Where the plan says nothing; a later one outranks, none: selective.
  std::vector<plan::Recompute> recompute;
  std::string recompute_origin = "--recompute";  // for messages
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, momentum = 0,
         weight_decay = 0.01, clip_norm = 0;
  double loss_scale = 65536;  // of the first step in f16
  bool keep_gradients = false;
  int onebit_warmup = 0;  // of 1-bit optimizers: the steps before
  int64_t pipemare = 0;   // updates in which stages of old weights slow down
  // What is left of an update, after as many as a gradient's weights are old,
  // in the average by which they are corrected; 0: gradients have old weights.
  double pipemare_correction = 0;
  int64_t microbatches = 1;  // the plan's
  // A step of the first microbatch alone: what each takes, for trials.
  bool first_microbatch = false;
};

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_TRAIN_OPTIONS_H_
