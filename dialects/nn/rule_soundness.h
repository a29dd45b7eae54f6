// Checks a sharding rule by executing it: the operation is evaluated shard by
// shard, and the merged parts must equal the undivided reference.
#ifndef PARTITA_DIALECTS_NN_RULE_SOUNDNESS_H_
#define PARTITA_DIALECTS_NN_RULE_SOUNDNESS_H_

#include <cstdint>
#include <string>

#include "dialects/nn/sharding_rule.h"
#include "dialects/nn/tensor.h"

namespace partita::nn {

// A factor divided over `shards` devices, `block` elements per device until
// none are left.
struct FactorDivision {
  int factor;
  int64_t shards;
  int64_t block;
};

// Returns the first difference for these divisions, e.g. "result 0 at [1, 2]:
// expected 3.5, found 2", or an empty string. Integers must be equal; floats
// may differ by the rounding of each shard's part. The rule must fit the
// operation's types (findFlaw).
std::string findUnsoundness(mlir::Operation* op, const ShardingRule& rule,
                            llvm::ArrayRef<FactorDivision> divisions,
                            llvm::ArrayRef<Tensor> operands);

// Checks the operands in which the rule claims linearity: the operation on sums
// must equal the sum of its results.
std::string findNonlinearity(mlir::Operation* op, const ShardingRule& rule,
                             uint64_t seed);

// Runs all checks on random operands of the operation's shapes: the fit of the
// rule; every divisible factor over 2 to max_shards devices, in even and larger
// blocks; every pair of factors over meshes of up to max_shards; its linear
// operands.
std::string findUnsoundness(mlir::Operation* op, const ShardingRule& rule,
                            int64_t max_shards, uint64_t seed);

// Runs all checks on shapes so small that the cost does not depend on the
// model's sizes.
std::string findUnsoundnessShrunken(mlir::Operation* op,
                                    const ShardingRule& rule,
                                    int64_t max_shards, uint64_t seed);

}  // namespace partita::nn

#endif  // PARTITA_DIALECTS_NN_RULE_SOUNDNESS_H_
