// Writes mixtures of experts with operations that libraries and kernels
// support; see passes.td.
#include "compiler/kernels/library_products.h"
#include "compiler/kernels/passes.h"
#include "dialects/nn/dialect.h"
#include "dialects/nn/row_share.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::kernels {

#define GEN_PASS_DEF_EXPANDEXPERTSPASS
#include "compiler/kernels/passes.h.inc"

namespace {

class ExpandExperts : public impl::ExpandExpertsPassBase<ExpandExperts> {
 public:
  using ExpandExpertsPassBase::ExpandExpertsPassBase;

  void runOnOperation() override {
    // The products come from the layers.
    if (mlir::failed(decomposeAll<nn::ExpertsOp, nn::ExpertsGradOp>()) ||
        mlir::failed(
            decomposeAll<nn::GroupedDotOp, nn::GroupedDotWeightGradOp>()))
      signalPassFailure();
  }

 private:
  static bool stays(mlir::Operation* op) {
    if (!isLibraryProduct(op)) return false;
    if (auto product = llvm::dyn_cast<nn::GroupedDotOp>(op))
      return isLibraryIndex(product.getIds());
    auto gradient = llvm::dyn_cast<nn::GroupedDotWeightGradOp>(op);
    return gradient && isLibraryIndex(gradient.getIds());
  }

  // Gives products between `before` and `op` the share of rows of `op`.
  static void passShareOn(mlir::Operation* op, mlir::Operation* before) {
    const mlir::Attribute share = op->getAttr(nn::kRowShareAttr);
    if (!share) return;
    mlir::Operation* made =
        before ? before->getNextNode() : &op->getBlock()->front();
    for (; made != op; made = made->getNextNode())
      if (llvm::isa<nn::GroupedDotOp, nn::GroupedDotWeightGradOp>(made))
        made->setAttr(nn::kRowShareAttr, share);
  }

  template <typename... Ops>
  mlir::LogicalResult decomposeAll() {
    llvm::SmallVector<nn::DecompositionOpInterface> composites;
    getOperation().walk([&](nn::DecompositionOpInterface op) {
      if (llvm::isa<Ops...>(op.getOperation()) && !stays(op))
        composites.push_back(op);
    });
    for (nn::DecompositionOpInterface op : composites) {
      mlir::OpBuilder builder(op);
      mlir::Operation* before = op->getPrevNode();
      auto results = op.decompose(builder);
      if (mlir::failed(results)) return mlir::failure();
      passShareOn(op, before);
      op->replaceAllUsesWith(*results);
      op->erase();
    }
    return mlir::success();
  }
};

}  // namespace
}  // namespace partita::kernels
