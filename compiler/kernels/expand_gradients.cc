// Gradients in operations that libraries and kernels know; see passes.td.
#include "compiler/kernels/passes.h"
#include "dialects/nn/math_builder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::kernels {

#define GEN_PASS_DEF_EXPANDGRADIENTSPASS
#include "compiler/kernels/passes.h.inc"

namespace {

using mlir::Value;

class ExpandGradients : public impl::ExpandGradientsPassBase<ExpandGradients> {
 public:
  void runOnOperation() override {
    llvm::SmallVector<mlir::Operation*> composites, convolutions;
    getOperation().walk([&](mlir::Operation* op) {
      if (llvm::isa<nn::AttentionGradOp, nn::ReduceWindowGradOp>(op))
        composites.push_back(op);
      if (llvm::isa<nn::ConvInputGradOp, nn::ConvWeightGradOp>(op))
        convolutions.push_back(op);
    });
    for (mlir::Operation* op : composites) {
      if (mlir::failed(decompose(op))) return signalPassFailure();
    }
    for (mlir::Operation* op : convolutions) widen(op);
  }

 private:
  static mlir::LogicalResult decompose(mlir::Operation* op) {
    mlir::OpBuilder builder(op);
    auto results =
        llvm::cast<nn::DecompositionOpInterface>(op).decompose(builder);
    if (mlir::failed(results)) return mlir::failure();
    op->replaceAllUsesWith(*results);
    op->erase();
    return mlir::success();
  }

  // Libraries compute in f32.
  static void widen(mlir::Operation* op) {
    mlir::OpBuilder builder(op);
    nn::MathBuilder math(builder, op->getLoc());
    Value result = op->getResult(0);
    auto type = llvm::cast<mlir::RankedTensorType>(result.getType());
    if (type.getElementTypeBitWidth() >= 32) return;
    for (mlir::OpOperand& operand : op->getOpOperands())
      operand.set(math.widen(operand.get()));
    result.setType(type.clone(builder.getF32Type()));
    builder.setInsertionPointAfter(op);
    Value narrow = math.narrow(result, type);
    result.replaceAllUsesExcept(narrow, narrow.getDefiningOp());
  }
};

}  // namespace
}  // namespace partita::kernels
