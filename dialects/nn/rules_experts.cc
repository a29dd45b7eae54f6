// Sharding rules of mixtures of experts and of grouped products.
#include "dialects/nn/dialect.h"
#include "dialects/nn/experts.h"
#include "dialects/nn/rule_builder.h"

namespace partita::nn {
namespace {

// Factors of nn.experts and of its gradient. The result is a partial sum over
// experts and hidden width: each device adds the experts, and the part of
// their hidden width, that it holds.
struct ExpertFactors {
  TensorFactors x, ids, result;
  TensorFactors inward, outward;  // gate and up; down
  TensorFactors inward_bias, outward_bias;
  int experts;

  // `kind` is the kind of experts and hidden width.
  template <typename Op>
  ExpertFactors(RuleBuilder& rule, Op op, FactorKind kind) {
    const auto shape = op.getX().getType().getShape();
    const auto up = op.getUp().getType().getShape();
    for (int64_t size : shape.drop_back()) x.push_back({rule.factor(size)});
    ids = result = x;
    const DimFactors out = {rule.factor(op.getDown().getType().getShape()[1])};
    experts = rule.factor(up[0], kind);
    const DimFactors hidden = {rule.factor(up[1], kind)};
    // Experts over the axes of the batch: the batch is gathered here.
    rule.keepAxes(experts);
    const DimFactors in = {rule.factor(up[2], FactorKind::kWhole)};
    x.push_back(in);
    ids.push_back({rule.factor(op.getIds().getType().getShape().back(),
                               FactorKind::kWhole)});
    result.push_back(out);
    inward = {{experts}, hidden, in};
    outward = {{experts}, out, hidden};
    inward_bias = {{experts}, hidden};
    outward_bias = {{experts}, out};
  }

  // The factors of each parameter, in order.
  template <typename Op>
  std::vector<TensorFactors> parameters(Op op) const {
    std::vector<TensorFactors> all;
    if (op.getGate()) all.push_back(inward);
    all.push_back(inward);
    all.push_back(outward);
    if (op.getGateBias()) all.push_back(inward_bias);
    if (op.getUpBias()) all.push_back(inward_bias);
    if (op.getDownBias()) all.push_back(outward_bias);
    return all;
  }
};

void append(std::vector<TensorFactors>& all,
            const std::vector<TensorFactors>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

}  // namespace

ShardingRule ExpertsOp::getShardingRule() {
  RuleBuilder builder(*this);
  const ExpertFactors factors(builder, *this, FactorKind::kReduced);
  ShardingRule rule = builder.take();
  rule.operands = {factors.x, factors.ids, factors.ids};
  append(rule.operands, factors.parameters(*this));
  rule.results = {factors.result};
  rule.linear = {2};
  rule.experts = factors.experts;
  return rule;
}

// Gradients of parameters are partial sums over rows; the others over experts,
// hidden width and the result's width.
ShardingRule ExpertsGradOp::getShardingRule() {
  RuleBuilder builder(*this);
  const ExpertFactors factors(builder, *this, FactorKind::kCarried);
  ShardingRule rule = builder.take();
  rule.operands = {factors.x, factors.ids, factors.ids, factors.result};
  rule.results = {factors.x, factors.ids};
  append(rule.operands, factors.parameters(*this));
  append(rule.results, factors.parameters(*this));
  rule.linear = {3};
  rule.experts = factors.experts;
  return rule;
}

ShardingRule GroupedDotOp::getShardingRule() {
  RuleBuilder rule(*this);
  const int64_t in_dim = getTransposed() ? 1 : 2;
  rule.carry(0, 0);
  rule.onOperand(1, 0, 0);
  const int out = rule.factor(rule.resultSize(0, 1));
  rule.onOperand(2, 3 - in_dim, out);
  rule.onResult(0, 1, out);
  const int in = rule.factor(rule.operandSize(0, 1), FactorKind::kReduced);
  rule.onOperand(0, 1, in);
  rule.onOperand(2, in_dim, in);
  rule.onOperand(2, 0,
                 rule.factor(rule.operandSize(2, 0), FactorKind::kReduced));
  rule.multilinear({0, 2});
  return rule.take();
}

ShardingRule GroupedDotWeightGradOp::getShardingRule() {
  RuleBuilder rule(*this);
  const int rows = rule.factor(rule.operandSize(0, 0), FactorKind::kReduced);
  for (int operand : {0, 1, 2}) rule.onOperand(operand, 0, rows);
  rule.onResult(0, 0, rule.factor(rule.resultSize(0, 0)));
  const int out = rule.factor(rule.resultSize(0, 1)),
            in = rule.factor(rule.resultSize(0, 2));
  rule.onOperand(2, 1, out);
  rule.onResult(0, 1, out);
  rule.onOperand(0, 1, in);
  rule.onResult(0, 2, in);
  rule.multilinear({0, 2});
  return rule.take();
}

}  // namespace partita::nn
