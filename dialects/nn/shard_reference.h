// A slow, obvious reference for one device's part of a divided operation: runs
// the operation on the device's part of the operands.
#ifndef PARTITA_DIALECTS_NN_SHARD_REFERENCE_H_
#define PARTITA_DIALECTS_NN_SHARD_REFERENCE_H_

#include <memory>
#include <string>
#include <vector>

#include "dialects/nn/sharding_rule.h"
#include "dialects/nn/tensor.h"
#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"

namespace partita::nn {

// The elements [begin, end) of a factor.
struct FactorRange {
  int64_t begin = 0, end = 0;
};

// A device's part of one result: for each dimension, the rows of the undivided
// result that the device holds, in order.
struct ShardResult {
  Tensor tensor;
  std::vector<std::vector<int64_t>> rows;
};

struct ShardResults {
  std::string error;  // empty, or the reason why the operation cannot be
                      // divided this way
  std::vector<ShardResult> results;
};

// Evaluates the operation on the operands' parts that belong to `ranges`, one
// range per factor of the rule. Implements the local forms that rules do not
// describe:
//   iota, attention's causal mask: count from the device's first row;
//   gather: rows that the device does not hold give 0;
//   conv, reduce_window: the device holds the input rows that its result rows
//     need; padding only at the edges of the undivided input;
//   conv: groups that the device does not hold are omitted.
ShardResults evaluateShard(mlir::Operation* op, const ShardingRule& rule,
                           llvm::ArrayRef<FactorRange> ranges,
                           llvm::ArrayRef<Tensor> operands);

// The operation on smaller shapes, for checks whose cost must not depend on the
// model's sizes. Divisible factors have at most `max_size` elements.
struct ShrunkenOp {
  std::string error;  // empty, or the reason why the operation cannot be shrunk
  std::unique_ptr<mlir::Block> block;  // contains the operation; never null
  mlir::Operation* op = nullptr;
  ShardingRule rule;
};
ShrunkenOp shrink(mlir::Operation* op, const ShardingRule& rule,
                  int64_t max_size);

}  // namespace partita::nn

#endif  // PARTITA_DIALECTS_NN_SHARD_REFERENCE_H_
