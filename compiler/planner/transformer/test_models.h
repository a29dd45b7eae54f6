// Builders of models and divisions for the planner's tests.
#ifndef PARTITA_COMPILER_PLANNER_TRANSFORMER_TEST_MODELS_H_
#define PARTITA_COMPILER_PLANNER_TRANSFORMER_TEST_MODELS_H_

#include <cstdint>

#include "compiler/planner/transformer/architecture.h"

namespace partita::planner {

// A GPT with 2,048 tokens, a vocabulary of 51,200 and MLPs of four times its
// width.
inline Architecture Gpt(int64_t layers, int64_t hidden, int64_t heads) {
  Architecture a;
  a.layers = layers;
  a.hidden = hidden;
  a.heads = a.kv_heads = heads;
  a.ffn = 4 * hidden;
  a.seq = 2048;
  a.vocab = 51200;
  return a;
}

// A division over tp x pp x dp devices.
inline Division Divide(int tp, int pp, int dp, int64_t microbatch,
                       int64_t batch) {
  Division d;
  d.tp = tp;
  d.pp = pp;
  d.dp = dp;
  d.devices = tp * pp * dp;
  d.microbatch = microbatch;
  d.batch = batch;
  return d;
}

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_TRANSFORMER_TEST_MODELS_H_
