// Writes gradients with operations that libraries and kernels support; see
// passes.td.
#include "compiler/kernels/passes.h"
#include "compiler/kernels/tiled_attention.h"
#include "dialects/nn/math_builder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::kernels {

#define GEN_PASS_DEF_EXPANDGRADIENTSPASS
#include "compiler/kernels/passes.h.inc"

namespace {

class ExpandGradients : public impl::ExpandGradientsPassBase<ExpandGradients> {
 public:
  void runOnOperation() override {
    llvm::SmallVector<mlir::Operation*> composites;
    getOperation().walk([&](mlir::Operation* op) {
      auto attention = llvm::dyn_cast<nn::AttentionGradOp>(op);
      if (attention ? !isTiled(attention)
                    : llvm::isa<nn::ReduceWindowGradOp>(op))
        composites.push_back(op);
    });
    for (mlir::Operation* op : composites) {
      if (mlir::failed(decompose(op))) return signalPassFailure();
    }
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
};

}  // namespace
}  // namespace partita::kernels
