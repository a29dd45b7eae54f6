// What an operation lets be divided: its dimensions as factors, as in an
// einsum.
#ifndef PARTITA_COMPILER_CORE_RULE_H_
#define PARTITA_COMPILER_CORE_RULE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace partita::core {

enum class FactorKind {
  kCarried,  // in operands and results: each shard computes its part
  kReduced,  // in operands only: each shard has a partial result
  kHalo,     // carried, but a shard needs neighbouring rows too; its sizes in
             // operands and results may differ (stride)
  kReducedHalo,  // reduced, but a shard needs neighbouring rows too; its sizes
                 // in operands may differ
  kWhole,        // must not be divided in this operation
  kDecompose,    // may be divided once the composite operation is decomposed
};

inline bool IsHalo(FactorKind kind) {
  return kind == FactorKind::kHalo || kind == FactorKind::kReducedHalo;
}
inline bool IsReduced(FactorKind kind) {
  return kind == FactorKind::kReduced || kind == FactorKind::kReducedHalo;
}

enum class Reduction { kSum, kProduct, kMax, kMin, kAny, kAll };

struct Factor {
  int64_t size = 1;  // with a halo: of the result's dimension, or where there
                     // is none of the last operand's
  FactorKind kind = FactorKind::kCarried;
  Reduction reduction = Reduction::kSum;  // of kReduced
};

// The factors of one dimension, the most significant first. Their sizes
// multiply to the dimension's (except a single factor with a halo). A
// dimension of size 1 may have no factor.
using DimFactors = std::vector<int>;
using TensorFactors = std::vector<DimFactors>;

struct Rule {
  std::vector<Factor> factors;
  // A result without a factor that operands and another result carry is a
  // partial sum over it, as it is over reduced factors.
  std::vector<TensorFactors> operands, results;
  // Operands in which the operation is linear: partial sums may pass through,
  // if all of them are unreduced over the same axes.
  std::vector<int> linear;
};

// Is the result a partial one on each shard of the factor?
bool IsPartial(const Rule& rule, int factor, int result);
// Is any?
bool IsPartialInSome(const Rule& rule, int factor);

// "([i, k], [k, j]) -> ([i, j]) {i=4, j=8, k=2} reduced={k}".
std::string ToString(const Rule& rule);

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_RULE_H_
