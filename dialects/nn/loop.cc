// Loops whose number of iterations depends on data: verifier, sharding rule and
// reference.
#include "dialects/nn/dialect.h"
#include "dialects/nn/interpreter.h"
#include "dialects/nn/rule_builder.h"
#include "dialects/nn/verify.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::nn {

using llvm::ArrayRef;
using llvm::SmallVector;
using mlir::failed;
using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;

namespace func = mlir::func;

namespace {

// The reference refuses loops that take longer; tests' loops are short. As in
// compiler/partition/spmd_interpreter.cc.
constexpr int64_t kMaxIterations = 1'000'000;

}  // namespace

LogicalResult LoopOp::verify() {
  // C1
  if (getNumResults() == 0) return emitOpError("expected a result");
  const auto flag = llvm::cast<mlir::RankedTensorType>(getResult(0).getType());
  if (flag.getRank() != 0 || !flag.getElementType().isInteger(1))
    return emitOpError() << "expected the first result to be a tensor<i1>, "
                            "found "
                         << flag;
  if (getNumOperands() < getNumResults())
    return emitOpError() << "expected at least " << getNumResults()
                         << " operands, one per result, found "
                         << getNumOperands();
  for (auto [i, types] :
       llvm::enumerate(llvm::zip(getResultTypes(), getOperandTypes())))
    if (std::get<0>(types) != std::get<1>(types))
      return emitOpError() << "expected operand " << i
                           << " to have the type of result " << i << ", "
                           << std::get<0>(types) << ", found "
                           << std::get<1>(types);
  return mlir::success();
}

LogicalResult LoopOp::verifySymbolUses(mlir::SymbolTableCollection& symbols) {
  // C2
  auto body =
      symbols.lookupNearestSymbolFrom<func::FuncOp>(*this, getBodyAttr());
  if (!body || !body.isPrivate() || body.isExternal())
    return emitOpError() << "expected a private function with a body, named "
                         << getBodyAttr() << ", found none";
  if (mlir::TypeRange(body.getFunctionType().getInputs()) !=
          mlir::TypeRange(getOperandTypes()) ||
      mlir::TypeRange(body.getFunctionType().getResults()) !=
          mlir::TypeRange(getResultTypes()))
    return emitOpError() << "operand and result types differ from those of "
                         << getBodyAttr() << ", " << body.getFunctionType();
  return mlir::success();
}

// A body may divide its values; compiler/sharding ties them to the loop's, as
// it ties the values of calls. As an operation alone, it takes whole tensors.
ShardingRule LoopOp::getShardingRule() {
  RuleBuilder rule(*this);
  for (auto [i, type] : llvm::enumerate(getOperandTypes()))
    for (size_t dim = 0; dim < RuleBuilder::shapeOf(type).size(); ++dim)
      rule.wholeOperand(static_cast<int>(i), static_cast<int64_t>(dim));
  for (auto [i, type] : llvm::enumerate(getResultTypes()))
    for (size_t dim = 0; dim < RuleBuilder::shapeOf(type).size(); ++dim)
      rule.wholeResult(static_cast<int>(i), static_cast<int64_t>(dim));
  return rule.take();
}

FailureOr<SmallVector<Tensor>> LoopOp::evaluate(ArrayRef<Tensor> operands) {
  auto body = mlir::SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      *this, getBodyAttr());
  if (!body || body.isExternal()) return failure();
  SmallVector<Tensor> values(operands);
  for (int64_t i = 0; values[0].getInt(0) != 0; ++i) {
    if (i >= kMaxIterations)
      return emitOpError() << "expected at most " << kMaxIterations
                           << " iterations to interpret, found more; take "
                              "inputs that need fewer";
    FailureOr<SmallVector<Tensor>> next = interpret(body, values);
    if (failed(next)) return failure();
    std::move(next->begin(), next->end(), values.begin());
  }
  values.truncate(getNumResults());
  return values;
}

}  // namespace partita::nn
