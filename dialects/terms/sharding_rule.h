// What an operation lets be divided: its dimensions as factors, as in an
// einsum.
//
// A rule speaks of the factors only. That a shard's computation needs more than
// smaller shapes (an offset into an iota, masked rows of a gather, rows of a
// neighbour) is the business of the local form of the operation;
// dialects/nn/rule_soundness.h has a slow one.
#ifndef PARTITA_DIALECTS_TERMS_SHARDING_RULE_H_
#define PARTITA_DIALECTS_TERMS_SHARDING_RULE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "dialects/terms/reduction.h"

namespace partita::terms {

enum class FactorKind {
  kCarried,  // in operands and results, or in results only: each shard
             // computes its part
  kReduced,  // in operands only: each shard has a partial result
  kHalo,     // carried, but a shard needs neighbouring rows too; its sizes in
             // operands and results may differ (stride)
  kReducedHalo,  // reduced, but of operand 0 a shard needs neighbouring rows
                 // too; its sizes in operands may differ
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
  int64_t size = 1;  // with a halo: of the result's dimension, or where there
                     // is none of the last operand's
  FactorKind kind = FactorKind::kCarried;
  Reduction reduction = Reduction::kSum;  // of kReduced
};

// The factors of one dimension, the most significant first. Their sizes
// multiply to the dimension's (except a single factor with a halo of an
// operand). A dimension of size 1 may have no factor.
using DimFactors = std::vector<int>;
using TensorFactors = std::vector<DimFactors>;

struct ShardingRule {
  std::vector<Factor> factors;
  // One entry per operand and result, absent optional ones left out; no
  // dimensions where it is not a tensor. A result without a factor that
  // operands and another result carry is a partial sum over it, as it is over
  // reduced factors.
  std::vector<TensorFactors> operands, results;
  // Operands in which, taken together, the operation is linear: partial sums
  // may pass through if all of them are unreduced over the same axes.
  std::vector<int> linear;
  // Operands in each of which alone it is linear, the others being whole sums
  // (the factors of a product).
  std::vector<int> multilinear;
};

bool operator==(const Factor& a, const Factor& b);
bool operator==(const ShardingRule& a, const ShardingRule& b);

// Is the result a partial one on each shard of the factor?
bool IsPartial(const ShardingRule& rule, int factor, int result);
// Is any?
bool IsPartialInSome(const ShardingRule& rule, int factor);

// i, j, ... z, then z_1, z_2 ...
std::string FactorName(int factor);
// "operand 1" or "result 0", of all operands followed by all results.
std::string TensorName(const ShardingRule& rule, int tensor);
// "([i, k], [k, j]) -> ([i, j]) {i=4, j=8, k=2} reduced={k}"; a dimension
// without factors is 1.
std::string ToString(const ShardingRule& rule);

// What is wrong with the rule itself, as the end of a message ("expected ...,
// found ..."); empty where nothing is.
std::string FindFlaw(const ShardingRule& rule);

}  // namespace partita::terms

#endif  // PARTITA_DIALECTS_TERMS_SHARDING_RULE_H_
