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

// Appends a factor for each dimension of an operand of a product that is
// neither batch nor contracted.
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

// Channels are [groups, channels of a group]: a division is by groups first.
ShardingRule ConvOp::getShardingRule() {
  RuleBuilder rule(*this);
  const int64_t rank = rule.resultRank(),
                channel = getChannelsLast() ? rank - 1 : 1,
                first_spatial = getChannelsLast() ? 1 : 2, groups = getGroups(),
                filters = rule.resultSize(0, channel) / groups;
  rule.carry(0, 0);
  if (groups > 1) {
    const int group = rule.factor(groups);
    rule.onOperand(0, channel, group);
    rule.onOperand(1, 0, group);
    rule.onResult(0, channel, group);
  }
  if (groups == 1 || filters > 1) {
    const int filter = rule.factor(filters);
    rule.onOperand(1, 0, filter);
    rule.onResult(0, channel, filter);
  }
  if (groups == 1 || rule.operandSize(1, 1) > 1) {
    const int input = rule.factor(rule.operandSize(1, 1), FactorKind::kReduced);
    rule.onOperand(0, channel, input);
    rule.onOperand(1, 1, input);
  }
  for (int64_t i = 0; i < rank - 2; ++i) {
    const int64_t dim = first_spatial + i;
    const bool is_pointwise = rule.operandSize(1, 2 + i) == 1 &&
                              getStrides()[i] == 1 && getLow()[i] == 0 &&
                              getHigh()[i] == 0;
    rule.carry(dim, dim,
               is_pointwise ? FactorKind::kCarried : FactorKind::kHalo);
    rule.wholeOperand(1, 2 + i);
  }
  rule.multilinear({0, 1});
  return rule.take();
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

ShardingRule ReduceWindowOp::getShardingRule() {
  RuleBuilder rule(*this);
  for (int64_t dim = 0; dim < rule.resultRank(); ++dim) {
    const bool is_pointwise = getWindow()[dim] == 1 && getStrides()[dim] == 1 &&
                              getLow()[dim] == 0 && getHigh()[dim] == 0;
    rule.carry(dim, dim,
               is_pointwise ? FactorKind::kCarried : FactorKind::kHalo);
  }
  if (getKind() == ReduceKind::sum) rule.linear({0});
  return rule.take();
}

}  // namespace partita::nn
