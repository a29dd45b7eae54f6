// Checks a sharding rule by doing what it says: the operation is evaluated
// shard by shard, and the parts must make up what the undivided reference
// gives.
#ifndef PARTITA_DIALECTS_NN_RULE_SOUNDNESS_H_
#define PARTITA_DIALECTS_NN_RULE_SOUNDNESS_H_

#include <cstdint>
#include <string>

#include "dialects/nn/sharding_rule.h"
#include "dialects/nn/tensor.h"

namespace partita::nn {

// A factor divided over `shards` devices, `block` elements on each while there
// are any.
struct FactorDivision {
  int factor;
  int64_t shards;
  int64_t block;
};

// What differs when the factors are so divided, in words: "result 0 at [1, 2]:
// expected 3.5, found 2"; empty if nothing does. Integers must be equal, floats
// within what rounding each shard's part explains. The rule must fit the
// operation's types (findFlaw).
std::string findUnsoundness(mlir::Operation* op, const ShardingRule& rule,
                            llvm::ArrayRef<FactorDivision> divisions,
                            llvm::ArrayRef<Tensor> operands);

// The same for the operands in which the rule claims linearity: the operation
// on sums must give the sums of its results.
std::string findNonlinearity(mlir::Operation* op, const ShardingRule& rule,
                             uint64_t seed);

// All of it on random operands of the operation's shapes: the rule's fit; every
// factor that it lets be divided over 2 to max_shards devices, in even and
// larger blocks; every pair of factors over meshes of at most max_shards; its
// linear operands.
std::string findUnsoundness(mlir::Operation* op, const ShardingRule& rule,
                            int64_t max_shards, uint64_t seed);

// The same on shapes so small that the cost does not depend on the model's.
std::string findUnsoundnessShrunken(mlir::Operation* op,
                                    const ShardingRule& rule,
                                    int64_t max_shards, uint64_t seed);

}  // namespace partita::nn

#endif  // PARTITA_DIALECTS_NN_RULE_SOUNDNESS_H_
