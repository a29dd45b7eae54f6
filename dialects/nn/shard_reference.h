// What one device computes of a divided operation, slowly and obviously: the
// operation itself on the device's part of the operands.
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

// Elements [begin, end) of a factor.
struct FactorRange {
  int64_t begin = 0, end = 0;
};

// A device's part of one result: for each dimension, the rows of the undivided
// result that it holds, in order.
struct ShardResult {
  Tensor tensor;
  std::vector<std::vector<int64_t>> rows;
};

struct ShardResults {
  std::string error;  // empty unless the operation cannot be so divided
  std::vector<ShardResult> results;
};

// Evaluates the operation on the part of the operands that belongs to `ranges`,
// one per factor of the rule. Knows what the rules leave to local forms:
//   iota, attention's causal mask: count from the device's first row;
//   gather: rows that the device does not have give 0;
//   conv, reduce_window: a device has the rows that its result's rows need, and
//     padding at the edges of the undivided input alone;
//   conv: groups that the device does not have do not count.
ShardResults evaluateShard(mlir::Operation* op, const ShardingRule& rule,
                           llvm::ArrayRef<FactorRange> ranges,
                           llvm::ArrayRef<Tensor> operands);

// The operation on smaller shapes, for checks whose cost must not grow with the
// model: factors that the rule lets be divided have at most `max_size`
// elements.
struct ShrunkenOp {
  std::string error;  // empty unless the operation cannot be so cut
  std::unique_ptr<mlir::Block> block;  // holds the operation; never null
  mlir::Operation* op = nullptr;
  ShardingRule rule;
};
ShrunkenOp shrink(mlir::Operation* op, const ShardingRule& rule,
                  int64_t max_size);

}  // namespace partita::nn

#endif  // PARTITA_DIALECTS_NN_SHARD_REFERENCE_H_
