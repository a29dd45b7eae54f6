// Between the dimensions of a tensor and the factors of an operation's rule.
#ifndef PARTITA_COMPILER_CORE_PROJECTION_H_
#define PARTITA_COMPILER_CORE_PROJECTION_H_

#include <cstdint>
#include <vector>

#include "compiler/core/mesh.h"
#include "compiler/core/propagate.h"
#include "compiler/core/sharding.h"
#include "compiler/core/terms.h"

namespace partita::core {

// What two lists of axes have in common, major axes first. Parts of axes are
// compared: a and a:(1)2, a:(2)2 are the same list.
struct AxesMatch {
  std::vector<AxisRef> common;
  std::vector<AxisRef> rest_a, rest_b;  // what follows in each

  bool Same() const { return rest_a.empty() && rest_b.empty(); }
  bool Conflict() const { return !rest_a.empty() && !rest_b.empty(); }
};
AxesMatch MatchAxes(const std::vector<AxisRef>& a,
                    const std::vector<AxisRef>& b);

// The part of a list before the first position it shares with `taken`.
std::vector<AxisRef> Before(const std::vector<AxisRef>& axes,
                            const std::vector<AxisRef>& taken);

// The axes before the first of a priority that is barred.
std::vector<AxisRef> BeforeBarred(const std::vector<AxisRef>& axes,
                                  const std::vector<int>& barred);

// How one factor is divided, read off a tensor's dimension.
struct FactorAxes {
  std::vector<AxisRef> axes;
  int64_t block = 0;  // 0: the even share
  // Whether the dimension's shards are exactly such blocks of the factor; if
  // not, axes are right and rows have to move.
  bool exact = true;
};

// One entry per factor of the dimension. The first factor takes all axes, if
// its rows stay together; where shards are smaller than its rows, it takes what
// divides it to single rows, in parts of axes if need be, and the next factors
// the rest. Blocks that fit neither leave the axes with the factor, inexactly.
std::vector<FactorAxes> ProjectDim(const ShardingRule& rule,
                                   const DimFactors& factors, int64_t size,
                                   const DimSharding& dim);

// The dimension's axes and block when its factors are divided so; `by_factor`
// has an entry per factor of the rule. Returns the first factor whose axes no
// block of the dimension expresses, because a factor before it is not divided
// to single rows or its own shards are uneven; -1 where `dim` is filled in
// (only axes and block).
int AssembleDim(const Mesh& mesh, const ShardingRule& rule,
                const DimFactors& factors, int64_t size,
                const std::vector<FactorAxes>& by_factor, DimSharding& dim);

int64_t BytesOf(const Value& value);

// An operand or result of an operation, operands first.
struct OpTensor {
  int value = -1;
  bool is_result = false;
  int index = 0;  // among the operands, or among the results
  const TensorFactors* factors = nullptr;
};
std::vector<OpTensor> TensorsOf(const Op& op);

// Of one tensor: per factor of the rule, how it is divided and in which
// dimension it lies (-1: not in this tensor).
struct TensorProjection {
  std::vector<FactorAxes> factors;
  std::vector<int> dims;
};
TensorProjection ProjectTensor(const ShardingRule& rule,
                               const TensorFactors& factors,
                               const std::vector<int64_t>& shape,
                               const Sharding& sharding);

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_PROJECTION_H_
