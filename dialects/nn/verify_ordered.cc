// Classes, registration, verifiers and sharding rules of products of ordered
// rows.
#include "dialects/nn/ordered.h"
#include "dialects/nn/rule_builder.h"
#include "dialects/nn/verify.h"

#define GET_OP_CLASSES
#include "dialects/nn/ordered.cc.inc"

namespace partita::nn {

using llvm::ArrayRef;
using mlir::failed;
using mlir::failure;
using mlir::LogicalResult;
using mlir::RankedTensorType;

namespace {

LogicalResult checkOrder(mlir::Operation* op, mlir::Value order,
                         int64_t matrices, int64_t rows) {
  return checkShape(op, "an order", {sizeOfRowOrder(matrices, rows)},
                    llvm::cast<RankedTensorType>(order.getType()).getShape());
}

LogicalResult checkRank(mlir::Operation* op, llvm::StringRef name,
                        RankedTensorType type, int64_t rank) {
  if (type.getRank() == rank) return mlir::success();
  return op->emitOpError() << "expected " << name << " of rank " << rank
                           << ", found " << type.getRank();
}

// They appear after a program has been divided.
ShardingRule wholeRule(mlir::Operation* op) {
  RuleBuilder rule(op);
  for (auto [i, type] : llvm::enumerate(op->getOperandTypes()))
    for (size_t dim = 0; dim < RuleBuilder::shapeOf(type).size(); ++dim)
      rule.wholeOperand(i, dim);
  for (size_t dim = 0;
       dim < RuleBuilder::shapeOf(op->getResult(0).getType()).size(); ++dim)
    rule.wholeResult(0, dim);
  return rule.take();
}

template <typename... Ops>
void insert(mlir::Dialect& dialect) {
  (mlir::RegisteredOperationName::insert<Ops>(dialect), ...);
}

}  // namespace

void registerOrderedOperations(mlir::DialectRegistry& registry) {
  registry.addExtension(+[](mlir::MLIRContext*, NNDialect* dialect) {
    insert<OrderRowsOp, OrderedDotOp, OrderedDotWeightGradOp>(*dialect);
  });
}

LogicalResult OrderRowsOp::verify() {
  // C1
  const RankedTensorType ids = getIds().getType();
  if (failed(checkRank(*this, "ids", ids, 1))) return failure();
  const int64_t matrices = getMatrices();
  if (matrices < 1)
    return emitOpError() << "expected at least 1 matrix, found " << matrices;
  // C2
  return checkOrder(*this, getOrder(), matrices, ids.getDimSize(0));
}

LogicalResult OrderedDotOp::verify() {
  // C1
  const RankedTensorType x = getX().getType(), w = getW().getType();
  if (failed(checkRank(*this, "x", x, 2)) ||
      failed(checkRank(*this, "w", w, 3)))
    return failure();
  const int64_t rows = x.getDimSize(0), width = x.getDimSize(1);
  const int64_t out = w.getDimSize(getTransposed() ? 2 : 1);
  llvm::SmallVector<int64_t> matrices = {w.getDimSize(0), out, width};
  if (getTransposed()) std::swap(matrices[1], matrices[2]);
  if (failed(checkOrder(*this, getOrder(), w.getDimSize(0), rows)) ||
      failed(checkShape(*this, "w", matrices, w.getShape())) ||
      failed(checkShape(*this, "a result", {rows, out}, getType().getShape())))
    return failure();
  return checkElementTypes(*this, {x, w, getType()});
}

LogicalResult OrderedDotWeightGradOp::verify() {
  // C1
  const RankedTensorType x = getX().getType(), g = getResultGrad().getType();
  if (failed(checkRank(*this, "x", x, 2)) ||
      failed(checkRank(*this, "result_grad", g, 2)) ||
      failed(checkRank(*this, "a result", getType(), 3)))
    return failure();
  const int64_t rows = x.getDimSize(0), matrices = getType().getDimSize(0);
  if (failed(checkOrder(*this, getOrder(), matrices, rows)) ||
      failed(checkShape(*this, "result_grad", {rows, g.getDimSize(1)},
                        g.getShape())) ||
      failed(checkShape(*this, "a result",
                        {matrices, g.getDimSize(1), x.getDimSize(1)},
                        getType().getShape())))
    return failure();
  return checkElementTypes(*this, {x, g, getType()});
}

ShardingRule OrderRowsOp::getShardingRule() { return wholeRule(*this); }
ShardingRule OrderedDotOp::getShardingRule() { return wholeRule(*this); }
ShardingRule OrderedDotWeightGradOp::getShardingRule() {
  return wholeRule(*this);
}

}  // namespace partita::nn
