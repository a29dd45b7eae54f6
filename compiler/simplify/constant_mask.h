// Recognises masks that are constant.
#ifndef PARTITA_COMPILER_SIMPLIFY_CONSTANT_MASK_H_
#define PARTITA_COMPILER_SIMPLIFY_CONSTANT_MASK_H_

#include <optional>
#include <vector>

#include "compiler/simplify/attention_match.h"
#include "dialects/nn/tensor.h"

namespace partita::simplify {

// Returns the value of a tensor that depends on constants alone, if it is cheap
// to compute.
std::optional<nn::Tensor> evaluateConstant(mlir::Value value);

// The keys that a constant bias leaves visible: causality, a window, or both,
// sinks, and blocks of keys.
struct ConstantMask {
  // Query i sees keys i + first <= j <= i + last; nullopt: no limit.
  std::optional<int64_t> first, last;
  // It also sees keys j < sinks that are not above i + last.
  int64_t sinks = 0;
  // Of all these, it sees those in visible blocks: block (i / size, j / size)
  // of a table [rows, columns]. 0: all blocks are visible.
  int64_t block_size = 0, columns = 0;
  std::vector<bool> blocks;

  bool sees(int64_t query, int64_t key) const;

  // The attributes of nn.attention on `keys` keys. A window requires a causal
  // offset; then one that hides nothing takes the place of an absent `last`.
  std::optional<int64_t> causalOffset(int64_t keys) const;
  std::optional<int64_t> window(int64_t keys) const;
};

// Sets the attributes of `op`.
void setMask(nn::AttentionOp op, const ConstantMask& mask);

// Returns the keys that are visible in both masks; nullopt if a query may see
// none, or if the attributes cannot express both.
std::optional<ConstantMask> intersect(const ConstantMask& a,
                                      const ConstantMask& b, int64_t queries,
                                      int64_t keys);

// Returns nullopt if the bias is not constant, has another pattern, or hides
// every key from a query.
std::optional<ConstantMask> matchConstantMask(const ScoreBias& bias);

}  // namespace partita::simplify

#endif  // PARTITA_COMPILER_SIMPLIFY_CONSTANT_MASK_H_
