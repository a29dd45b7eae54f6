// How an operation may be divided: its dimensions as factors, as in an einsum.
//
// A rule describes factors only. A shard's computation may need more than
// smaller shapes: an offset into an iota, masked rows of a gather, rows of a
// neighbour. The operation's local form handles that;
// dialects/nn/rule_soundness.h has a slow one.
#ifndef PARTITA_DIALECTS_TERMS_SHARDING_RULE_H_
#define PARTITA_DIALECTS_TERMS_SHARDING_RULE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dialects/terms/reduction.h"

namespace partita::terms {

enum class FactorKind {
  kCarried,  // in operands and results, or in results only: each shard computes
             // its part
  kReduced,  // in operands only: each shard has a partial result
  kHalo,     // carried, but a shard also needs neighbouring rows; its sizes in
             // operands and results may differ (stride)
  kReducedHalo,  // reduced, but a shard also needs neighbouring rows of operand
                 // 0; its sizes in operands may differ
  kWhole,        // must not be divided in this operation
  kDecompose,    // may be divided once the composite operation is decomposed
};

inline bool IsHalo(FactorKind kind) {
  return kind == FactorKind::kHalo || kind == FactorKind::kReducedHalo;
}
inline bool IsReduced(FactorKind kind) {
  return kind == FactorKind::kReduced || kind == FactorKind::kReducedHalo;
}

struct Factor {
  int64_t size = 1;  // with a halo: the size in the result, or in the last
                     // operand if no result has the factor
  FactorKind kind = FactorKind::kCarried;
  Reduction reduction = Reduction::kSum;  // for kReduced
  // True if, in this operation, the factor keeps an axis that others want too,
  // whatever the priorities.
  bool keeps_axes = false;
};

// The factors of one dimension, most significant first. Their sizes multiply to
// the dimension's size, except for a single factor with a halo in an operand. A
// dimension of size 1 may have no factor.
using DimFactors = std::vector<int>;
using TensorFactors = std::vector<DimFactors>;

// The factors of attention. Each query needs all keys, so keys are whole where
// queries are divided, unless the operation is computed in another way
// (LongAttention in compiler/core/propagate.h).
struct AttentionFactors {
  int queries = -1, keys = -1;
  int heads = -1;  // the most significant factor of the heads
  // Which keys a query sees depends on their positions in the whole sequence,
  // so that parts of the keys do not have the same masks.
  bool sees_absolute_keys = false;
};

struct ShardingRule {
  std::vector<Factor> factors;
  // One entry per operand and result. Absent optional ones have no entry;
  // values that are not tensors have no dimensions. A result is a partial sum
  // over each reduced factor, and over each factor that it lacks but operands
  // and another result carry.
  std::vector<TensorFactors> operands, results;
  // Operands in which the operation is jointly linear. Partial sums may pass
  // through if all of these operands are unreduced over the same axes.
  std::vector<int> linear;
  // Operands in each of which the operation is linear while the others are
  // complete sums (the factors of a product).
  std::vector<int> multilinear;
  std::optional<AttentionFactors> attention;
  // The factor of experts, if rows of operand 0 choose theirs by operand 1.
  // Each row may then travel to the devices that have its experts (RowExchange
  // in compiler/core/propagate.h). -1: none.
  int experts = -1;
};

bool operator==(const Factor& a, const Factor& b);
bool operator==(const AttentionFactors& a, const AttentionFactors& b);
bool operator==(const ShardingRule& a, const ShardingRule& b);

// True if dividing the factor leaves a partial result on each shard.
bool IsPartial(const ShardingRule& rule, int factor, int result);
// True if IsPartial holds for at least one result.
bool IsPartialInSome(const ShardingRule& rule, int factor);

// Names in order: i, j, ... z, z_1, z_2 ...
std::string FactorName(int factor);
// "operand 1" or "result 0". `tensor` counts all operands, then all results.
std::string TensorName(const ShardingRule& rule, int tensor);
// E.g. "([i, k], [k, j]) -> ([i, j]) {i=4, j=8, k=2} reduced={k}". A dimension
// without factors is printed as 1.
std::string ToString(const ShardingRule& rule);

// Returns the first defect of the rule as the end of a message ("expected ...,
// found ..."), or an empty string.
std::string FindFlaw(const ShardingRule& rule);

}  // namespace partita::terms

#endif  // PARTITA_DIALECTS_TERMS_SHARDING_RULE_H_
