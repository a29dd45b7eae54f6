// Sharding rules of the composites. What only their decomposition can divide is
// kDecompose.
#include "dialects/nn/dialect.h"
#include "dialects/nn/rule_builder.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::nn {
namespace {

// Operand 0 and result 0 alike: dimensions from `first` on need all of a row,
// and are those of the other operands.
ShardingRule normRule(mlir::Operation* op, int64_t first) {
  RuleBuilder rule(op);
  for (int64_t dim = 0; dim < rule.resultRank(); ++dim) {
    rule.carry(dim, dim,
               dim < first ? FactorKind::kCarried : FactorKind::kDecompose);
    if (dim < first) continue;
    for (unsigned operand = 1; operand < op->getNumOperands(); ++operand)
      rule.onOperand(operand, dim - first, static_cast<int>(dim));
  }
  return rule.take();
}

}  // namespace

ShardingRule RandomOp::getShardingRule() {
  RuleBuilder rule(*this);
  for (int64_t dim = 0; dim < rule.resultRank(); ++dim)
    rule.onResult(0, dim,
                  rule.factor(rule.resultSize(0, dim), FactorKind::kDecompose));
  return rule.take();
}

ShardingRule SoftmaxOp::getShardingRule() {
  RuleBuilder rule(*this);
  for (int64_t dim = 0; dim < rule.resultRank(); ++dim) {
    const bool is_axis = dim == static_cast<int64_t>(getAxis());
    rule.carry(dim, dim,
               is_axis ? FactorKind::kDecompose : FactorKind::kCarried);
  }
  return rule.take();
}

ShardingRule LayerNormOp::getShardingRule() {
  return normRule(*this, getAxis());
}

ShardingRule RmsNormOp::getShardingRule() { return normRule(*this, getAxis()); }

ShardingRule BatchNormOp::getShardingRule() {
  RuleBuilder rule(*this);
  for (int64_t dim = 0; dim < rule.resultRank(); ++dim) {
    const bool is_feature = dim == static_cast<int64_t>(getFeature());
    rule.carry(dim, dim,
               is_feature || !getTraining() ? FactorKind::kCarried
                                            : FactorKind::kDecompose);
    if (!is_feature) continue;
    const int feature = static_cast<int>(dim);
    for (unsigned operand = 1; operand < getNumOperands(); ++operand)
      rule.onOperand(operand, 0, feature);
    for (unsigned result = 1; result < getNumResults(); ++result)
      rule.onResult(result, 0, feature);
  }
  return rule.take();
}

// Query heads are [key-value heads, query heads of each]. Where one of the two
// is 1 it is left out, so that axes find the other.
ShardingRule AttentionOp::getShardingRule() {
  RuleBuilder rule(*this);
  const int64_t heads = rule.operandSize(0, 1),
                key_heads = rule.operandSize(1, 1);
  const int batch = rule.factor(rule.operandSize(0, 0));
  const int query = rule.factor(rule.operandSize(0, 2));
  const int value = rule.factor(rule.operandSize(2, 3));
  const int key = rule.factor(rule.operandSize(1, 2), FactorKind::kWhole);
  const int inner = rule.factor(rule.operandSize(0, 3), FactorKind::kWhole);
  DimFactors head_factors;
  if (key_heads > 1 || heads == key_heads) {
    const int group = rule.factor(key_heads);
    head_factors.push_back(group);
    rule.onOperand(1, 1, group);
    rule.onOperand(2, 1, group);
  }
  if (heads > key_heads) head_factors.push_back(rule.factor(heads / key_heads));
  for (int operand : {0, 1, 2}) rule.onOperand(operand, 0, batch);
  for (int factor : head_factors) rule.onOperand(0, 1, factor);
  rule.onOperand(0, 2, query);
  rule.onOperand(0, 3, inner);
  rule.onOperand(1, 2, key);
  rule.onOperand(1, 3, inner);
  rule.onOperand(2, 2, key);
  rule.onOperand(2, 3, value);
  if (getBias()) {
    const DimFactors factors[] = {{batch}, head_factors, {query}, {key}};
    for (int dim = 0; dim < 4; ++dim) {
      if (rule.operandSize(3, dim) == 1) continue;
      for (int factor : factors[dim]) rule.onOperand(3, dim, factor);
    }
  }
  rule.onResult(0, 0, batch);
  for (int factor : head_factors) rule.onResult(0, 1, factor);
  rule.onResult(0, 2, query);
  rule.onResult(0, 3, value);
  rule.linear({2});
  return rule.take();
}

ShardingRule CrossEntropyOp::getShardingRule() {
  RuleBuilder rule(*this);
  const int64_t rank = rule.resultRank();
  for (int64_t dim = 0; dim < rank; ++dim) {
    rule.carry(dim, dim);
    rule.onOperand(1, dim, static_cast<int>(dim));
  }
  rule.onOperand(
      0, rank, rule.factor(rule.operandSize(0, rank), FactorKind::kDecompose));
  return rule.take();
}

}  // namespace partita::nn
