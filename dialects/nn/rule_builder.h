// Builds the sharding rule of one operation, factor by factor.
#ifndef PARTITA_DIALECTS_NN_RULE_BUILDER_H_
#define PARTITA_DIALECTS_NN_RULE_BUILDER_H_

#include <utility>
#include <vector>

#include "dialects/nn/sharding_rule.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

namespace partita::nn {

class RuleBuilder {
 public:
  // Starts with no factors on any dimension.
  explicit RuleBuilder(mlir::Operation* op) : op_(op) {
    for (mlir::Type type : op->getOperandTypes())
      rule_.operands.emplace_back(shapeOf(type).size());
    for (mlir::Type type : op->getResultTypes())
      rule_.results.emplace_back(shapeOf(type).size());
  }

  // Empty for a type that is not a tensor.
  static llvm::ArrayRef<int64_t> shapeOf(mlir::Type type) {
    const auto tensor = mlir::dyn_cast<mlir::RankedTensorType>(type);
    return tensor ? tensor.getShape() : llvm::ArrayRef<int64_t>();
  }
  int64_t operandSize(int operand, int64_t dim) const {
    return shapeOf(op_->getOperand(operand).getType())[dim];
  }
  int64_t resultSize(int result, int64_t dim) const {
    return shapeOf(op_->getResult(result).getType())[dim];
  }
  int64_t resultRank() const { return rule_.results[0].size(); }

  int factor(int64_t size, FactorKind kind = FactorKind::kCarried,
             Reduction reduction = Reduction::kSum) {
    rule_.factors.push_back({size, kind, reduction});
    return static_cast<int>(rule_.factors.size()) - 1;
  }

  void keepAxes(int factor) { rule_.factors[factor].keeps_axes = true; }

  // Appends a factor to a dimension, after its more significant factors.
  void onOperand(int operand, int64_t dim, int factor) {
    rule_.operands[operand][dim].push_back(factor);
  }
  void onResult(int result, int64_t dim, int factor) {
    rule_.results[result][dim].push_back(factor);
  }

  // Adds one factor for a dimension of operand 0 and a dimension of result 0
  // with the same size.
  void carry(int64_t operand_dim, int64_t result_dim,
             FactorKind kind = FactorKind::kCarried) {
    const int shared = factor(resultSize(0, result_dim), kind);
    onOperand(0, operand_dim, shared);
    onResult(0, result_dim, shared);
  }
  // Adds a separate factor that must not be divided.
  void wholeOperand(int operand, int64_t dim) {
    onOperand(operand, dim,
              factor(operandSize(operand, dim), FactorKind::kWhole));
  }
  void wholeResult(int result, int64_t dim) {
    onResult(result, dim, factor(resultSize(result, dim), FactorKind::kWhole));
  }

  void linear(std::vector<int> operands) { rule_.linear = std::move(operands); }
  void multilinear(std::vector<int> operands) {
    rule_.multilinear = std::move(operands);
  }

  ShardingRule take() { return std::move(rule_); }

 private:
  mlir::Operation* op_;
  ShardingRule rule_;
};

}  // namespace partita::nn

#endif  // PARTITA_DIALECTS_NN_RULE_BUILDER_H_
