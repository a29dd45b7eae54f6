// Converts between the dimensions of a tensor and the factors of an operation.
#ifndef PARTITA_COMPILER_CORE_PROJECTION_H_
#define PARTITA_COMPILER_CORE_PROJECTION_H_

#include <cstdint>
#include <vector>

#include "compiler/core/mesh.h"
#include "compiler/core/propagate.h"
#include "compiler/core/sharding.h"
#include "compiler/core/terms.h"

namespace partita::core {

// Common prefix of two lists of axes, major axes first. Parts of axes are
// compared: a equals a:(1)2, a:(2)2.
struct AxesMatch {
  std::vector<AxisRef> common;
  std::vector<AxisRef> rest_a, rest_b;  // remainder of each list

  bool Same() const { return rest_a.empty() && rest_b.empty(); }
  bool Conflict() const { return !rest_a.empty() && !rest_b.empty(); }
};
AxesMatch MatchAxes(const std::vector<AxisRef>& a,
                    const std::vector<AxisRef>& b);

// Returns the part of a list before the first position that `taken` uses.
std::vector<AxisRef> Before(const std::vector<AxisRef>& axes,
                            const std::vector<AxisRef>& taken);

// Returns the axes before the first axis with a barred priority.
std::vector<AxisRef> BeforeBarred(const std::vector<AxisRef>& axes,
                                  const std::vector<int>& barred);

// Sharding of one factor, derived from a tensor's dimension.
struct FactorAxes {
  std::vector<AxisRef> axes;
  int64_t block = 0;  // 0: the even share
  // True if the shards of the dimension are exactly blocks of the factor. If
  // false, the axes are right, but rows must move.
  bool exact = true;
};

// Returns one entry per factor of the dimension. The first factor takes all
// axes if its rows stay whole. If shards are smaller than its rows, it takes
// the axes (or parts of axes) that divide it to single rows, and the next
// factors take the rest. If a block fits neither case, the axes stay with the
// factor, inexactly.
std::vector<FactorAxes> ProjectDim(const ShardingRule& rule,
                                   const DimFactors& factors, int64_t size,
                                   const DimSharding& dim);

// Computes the axes and block of a dimension from its factors. `by_factor` has
// one entry per factor of the rule. Sets axes and block of `dim` and returns -1
// on success. Otherwise returns the first factor whose axes no block can
// express: a factor before it is not divided to single rows, or its own shards
// are uneven.
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

// The shardings of one tensor's factors. `dims` holds the dimension of each
// factor; -1 if the tensor lacks it.
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
