// Recognises masks that are constant.
#ifndef PARTITA_COMPILER_SIMPLIFY_CONSTANT_MASK_H_
#define PARTITA_COMPILER_SIMPLIFY_CONSTANT_MASK_H_

#include <optional>

#include "compiler/simplify/attention_match.h"
#include "dialects/nn/tensor.h"

namespace partita::simplify {

// Returns the value of a tensor that depends on constants alone, if it is cheap
// to compute.
std::optional<nn::Tensor> evaluateConstant(mlir::Value value);

// The keys that a constant bias hides.
struct ConstantMask {
  // Query i sees keys j <= i + offset; nullopt: every query sees every key.
  std::optional<int64_t> causal_offset;
};

// Returns nullopt if the bias is not constant, has another pattern, or hides
// every key from a query.
std::optional<ConstantMask> matchConstantMask(const ScoreBias& bias);

}  // namespace partita::simplify

#endif  // PARTITA_COMPILER_SIMPLIFY_CONSTANT_MASK_H_
