// Sharding rules of contraction and reduction.
#include "dialects/nn/dialect.h"
#include "dialects/nn/rule_builder.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::nn {
namespace {

Reduction reductionOf(ReduceKind kind, mlir::Type element) {
  const bool is_bool = element.isInteger(1);
  switch (kind) {
    case ReduceKind::sum:
      return Reduction::kSum;
    case ReduceKind::prod:
      return Reduction::kProduct;
    case ReduceKind::max:
      return is_bool ? Reduction::kAny : Reduction::kMax;
    case ReduceKind::min:
      return is_bool ? Reduction::kAll : Reduction::kMin;
  }
  llvm_unreachable("all kinds are above");
}

// Appends a factor for each dimension of a product's operand that is neither
// batch nor contracted.
void carryFreeDims(RuleBuilder& rule, int operand, int64_t rank,
                   llvm::ArrayRef<int64_t> batch,
                   llvm::ArrayRef<int64_t> contract, int64_t& result_dim) {
  for (int64_t dim = 0; dim < rank; ++dim) {
    if (llvm::is_contained(batch, dim) || llvm::is_contained(contract, dim))
      continue;
    const int factor = rule.factor(rule.operandSize(operand, dim));
    rule.onOperand(operand, dim, factor);
    rule.onResult(0, result_dim++, factor);
  }
}

// The place of one of a convolution's three tensors in an operation.
struct ConvTensor {
  int operand = -1;  // -1: the result
  llvm::ArrayRef<int64_t> shape;
};

// The rule of a convolution or one of its gradients. Channels are [groups,
// channels per group], so groups are divided first. Factors that the
// operation's result lacks are reduced.
template <typename Op>
ShardingRule convRule(Op op, ConvTensor input, ConvTensor weight,
                      ConvTensor result) {
  RuleBuilder rule(op);
  const auto on = [&rule](const ConvTensor& tensor, int64_t dim, int factor) {
    if (tensor.operand < 0) {
      rule.onResult(0, dim, factor);
    } else {
      rule.onOperand(tensor.operand, dim, factor);
    }
  };
  // The kind of a factor that two of the three tensors carry; `third` is the
  // one without it.
  const auto kindWithout = [](const ConvTensor& third) {
    return third.operand < 0 ? FactorKind::kReduced : FactorKind::kCarried;
  };
  const int64_t rank = input.shape.size(),
                channel = op.getChannelsLast() ? rank - 1 : 1,
                first_spatial = op.getChannelsLast() ? 1 : 2,
                groups = op.getGroups(), filters = weight.shape[0] / groups,
                channels = weight.shape[1];
  const int batch = rule.factor(input.shape[0], kindWithout(weight));
  on(input, 0, batch);
  on(result, 0, batch);
  if (groups > 1) {
    const int group = rule.factor(groups);
    on(input, channel, group);
    on(weight, 0, group);
    on(result, channel, group);
  }
  if (groups == 1 || filters > 1) {
    const int filter = rule.factor(filters, kindWithout(input));
    on(weight, 0, filter);
    on(result, channel, filter);
  }
  if (groups == 1 || channels > 1) {
    const int factor = rule.factor(channels, kindWithout(result));
    on(input, channel, factor);
    on(weight, 1, factor);
  }
  for (int64_t i = 0; i < rank - 2; ++i) {
    const int64_t dim = first_spatial + i;
    const bool is_pointwise = weight.shape[2 + i] == 1 &&
                              op.getStrides()[i] == 1 && op.getLow()[i] == 0 &&
                              op.getHigh()[i] == 0;
    const FactorKind kind =
        weight.operand < 0
            ? (is_pointwise ? FactorKind::kReduced : FactorKind::kReducedHalo)
            : (is_pointwise ? FactorKind::kCarried : FactorKind::kHalo);
    // The factor's size is the one in the operation's result, if the result has
    // it.
    const int rows = rule.factor(
        input.operand < 0 ? input.shape[dim] : result.shape[dim], kind);
    on(input, dim, rows);
    on(result, dim, rows);
    on(weight, 2 + i, rule.factor(weight.shape[2 + i], FactorKind::kWhole));
  }
  rule.multilinear({0, 1});
  return rule.take();
}

}  // namespace

ShardingRule DotGeneralOp::getShardingRule() {
  RuleBuilder rule(*this);
  int64_t result_dim = 0;
  for (auto [left, right] : llvm::zip_equal(getLhsBatch(), getRhsBatch())) {
    rule.carry(left, result_dim);
    rule.onOperand(1, right, static_cast<int>(result_dim++));
  }
  carryFreeDims(rule, 0, getLhs().getType().getRank(), getLhsBatch(),
                getLhsContract(), result_dim);
  carryFreeDims(rule, 1, getRhs().getType().getRank(), getRhsBatch(),
                getRhsContract(), result_dim);
  for (auto [left, right] :
       llvm::zip_equal(getLhsContract(), getRhsContract())) {
    const int factor =
        rule.factor(rule.operandSize(0, left), FactorKind::kReduced);
    rule.onOperand(0, left, factor);
    rule.onOperand(1, right, factor);
  }
  rule.multilinear({0, 1});
  return rule.take();
}

ShardingRule ConvOp::getShardingRule() {
  return convRule(*this, {0, getInput().getType().getShape()},
                  {1, getWeight().getType().getShape()},
                  {-1, getType().getShape()});
}

ShardingRule ConvInputGradOp::getShardingRule() {
  return convRule(*this, {-1, getType().getShape()},
                  {1, getWeight().getType().getShape()},
                  {0, getResultGrad().getType().getShape()});
}

ShardingRule ConvWeightGradOp::getShardingRule() {
  return convRule(*this, {0, getInput().getType().getShape()},
                  {-1, getType().getShape()},
                  {1, getResultGrad().getType().getShape()});
}

ShardingRule ReduceOp::getShardingRule() {
  RuleBuilder rule(*this);
  const Reduction reduction =
      reductionOf(getKind(), getType().getElementType());
  int64_t result_dim = 0;
  for (int64_t dim = 0; dim < getInput().getType().getRank(); ++dim) {
    if (llvm::is_contained(getDims(), dim)) {
      rule.onOperand(0, dim,
                     rule.factor(rule.operandSize(0, dim), FactorKind::kReduced,
                                 reduction));
    } else {
      rule.carry(dim, result_dim++);
    }
  }
  if (getKind() == ReduceKind::sum) rule.linear({0});
  return rule.take();
}

// All operands and the result have the same dimensions, with halos.
template <typename Op>
static ShardingRule windowRule(Op op) {
  RuleBuilder rule(op);
  for (int64_t dim = 0; dim < rule.resultRank(); ++dim) {
    const bool is_pointwise = op.getWindow()[dim] == 1 &&
                              op.getStrides()[dim] == 1 &&
                              op.getLow()[dim] == 0 && op.getHigh()[dim] == 0;
    rule.carry(dim, dim,
               is_pointwise ? FactorKind::kCarried : FactorKind::kHalo);
    for (unsigned operand = 1; operand < op->getNumOperands(); ++operand)
      rule.onOperand(operand, dim, static_cast<int>(dim));
  }
  return rule.take();
}

ShardingRule ReduceWindowOp::getShardingRule() {
  ShardingRule rule = windowRule(*this);
  if (getKind() == ReduceKind::sum) rule.linear = {0};
  return rule;
}

ShardingRule ReduceWindowGradOp::getShardingRule() {
  ShardingRule rule = windowRule(*this);
  rule.linear = {0};
  return rule;
}

}  // namespace partita::nn
