// Sharding rules of the composites. Factors that only the decomposition can
// divide are kDecompose.
#include "dialects/nn/dialect.h"
#include "dialects/nn/rule_builder.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::nn {
namespace {

// Operand 0 and result 0 have the same shape. Their dimensions from `first` on
// need a whole row; the other operands have these dimensions.
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

namespace {

// Query heads are [key-value heads, query heads per key-value head]. A factor
// of size 1 is omitted, so that axes go to the other one.
struct AttentionFactors {
  DimFactors batch, heads, key_heads, query, key, inner, value;

  AttentionFactors(RuleBuilder& rule, FactorKind value_kind) {
    const int64_t head_count = rule.operandSize(0, 1),
                  key_head_count = rule.operandSize(1, 1);
    batch = {rule.factor(rule.operandSize(0, 0))};
    query = {rule.factor(rule.operandSize(0, 2))};
    value = {rule.factor(rule.operandSize(2, 3), value_kind)};
    key = {rule.factor(rule.operandSize(1, 2), FactorKind::kWhole)};
    inner = {rule.factor(rule.operandSize(0, 3), FactorKind::kWhole)};
    if (key_head_count > 1 || head_count == key_head_count)
      heads = key_heads = {rule.factor(key_head_count)};
    if (head_count > key_head_count)
      heads.push_back(rule.factor(head_count / key_head_count));
  }

  terms::AttentionFactors numbers() const {
    return {query[0], key[0], heads[0]};
  }

  TensorFactors q() const { return {batch, heads, query, inner}; }
  TensorFactors k() const { return {batch, key_heads, key, inner}; }
  TensorFactors v() const { return {batch, key_heads, key, value}; }
  TensorFactors result() const { return {batch, heads, query, value}; }
  TensorFactors lse() const { return {batch, heads, query}; }
  TensorFactors bias(llvm::ArrayRef<int64_t> shape) const {
    TensorFactors factors = {batch, heads, query, key};
    for (int dim = 0; dim < 4; ++dim) {
      if (shape[dim] == 1) factors[dim].clear();
    }
    return factors;
  }

  // Appends the factors of the bias and of the masks, where present.
  template <typename Op>
  void addOptional(Op op, std::vector<TensorFactors>& operands) const {
    if (op.getBias())
      operands.push_back(bias(op.getBias().getType().getShape()));
    if (op.getShift()) operands.emplace_back();
    if (op.getQSegments()) operands.push_back({batch, query});
    if (op.getKSegments()) operands.push_back({batch, key});
  }
};

}  // namespace

ShardingRule AttentionOp::getShardingRule() {
  RuleBuilder builder(*this);
  // lse is no partial sum over the values' size, which it lacks.
  const AttentionFactors factors(
      builder, getLse() ? FactorKind::kWhole : FactorKind::kCarried);
  ShardingRule rule = builder.take();
  rule.operands = {factors.q(), factors.k(), factors.v()};
  factors.addOptional(*this, rule.operands);
  if (getFirstHead()) rule.operands.emplace_back();
  rule.results = {factors.result()};
  // lse is not a sum over summands of v.
  if (getLse())
    rule.results.push_back(factors.lse());
  else
    rule.linear = {2};
  rule.attention = factors.numbers();
  rule.attention->sees_absolute_keys = getSinks() || getBlocks();
  return rule;
}

// The gradients of k, v and a broadcast bias are partial sums over the factors
// that they lack: queries, query heads per key-value head, batch.
ShardingRule AttentionGradOp::getShardingRule() {
  RuleBuilder builder(*this);
  const AttentionFactors factors(builder, FactorKind::kWhole);
  ShardingRule rule = builder.take();
  rule.operands = {factors.q(), factors.k(), factors.v(), factors.result(),
                   factors.result()};
  factors.addOptional(*this, rule.operands);
  if (getLse()) rule.operands.push_back(factors.lse());
  if (getFirstHead()) rule.operands.emplace_back();
  rule.results = {factors.q(), factors.k(), factors.v()};
  if (getBiasGrad())
    rule.results.push_back(factors.bias(getBias().getType().getShape()));
  rule.linear = {4};
  rule.attention = factors.numbers();
  rule.attention->sees_absolute_keys = getSinks() || getBlocks();
  return rule;
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

// Devices take whole groups: a group has one scale.
ShardingRule DequantizeOp::getShardingRule() {
  RuleBuilder rule(*this);
  const int64_t last = rule.resultRank() - 1;
  for (int64_t dim = 0; dim < last; ++dim) {
    rule.carry(dim, dim);
    rule.onOperand(1, dim, static_cast<int>(dim));
    if (getZero()) rule.onOperand(2, dim, static_cast<int>(dim));
  }
  rule.wholeOperand(0, last);
  rule.wholeResult(0, last);
  rule.linear({1});
  return rule.take();
}

}  // namespace partita::nn
