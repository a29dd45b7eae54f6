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
    bool has_convolution = false;
    getOperation().walk([&](mlir::Operation* op) {
      has_convolution |=
          llvm::isa<nn::ConvOp, nn::ConvInputGradOp, nn::ConvWeightGradOp>(op);
      auto attention = llvm::dyn_cast<nn::AttentionGradOp>(op);
      if (attention ? !isTiled(attention)
                    : llvm::isa<nn::ReduceWindowGradOp>(op))
        composites.push_back(op);
    });
    for (mlir::Operation* op : composites) {
      auto window = llvm::dyn_cast<nn::ReduceWindowGradOp>(op);
      if (window && has_convolution) op = channelsLast(window);
      if (mlir::failed(decompose(op))) return signalPassFailure();
    }
  }

 private:
  // Writes the gradient of a maximum or minimum over images in channels last,
  // between two transposes. choose_layouts.cc cancels them with the transposes
  // of the convolutions around it. It could not move transposes through all
  // operations of the decomposition.
  static mlir::Operation* channelsLast(nn::ReduceWindowGradOp op) {
    const int64_t rank = op.getType().getRank();
    if (op.getKind() == nn::ReduceKind::sum || rank < 4 ||
        llvm::any_of(
            llvm::seq<size_t>(0, 2),
            [&](size_t dim) {
              return op.getWindow()[dim] != 1 || op.getStrides()[dim] != 1 ||
                     op.getLow()[dim] != 0 || op.getHigh()[dim] != 0;
            }))
      return op;
    llvm::SmallVector<int64_t> last = {0}, first = {0, rank - 1};
    for (int64_t dim = 2; dim < rank; ++dim) last.push_back(dim);
    last.push_back(1);
    for (int64_t dim = 1; dim + 1 < rank; ++dim) first.push_back(dim);
    mlir::OpBuilder builder(op);
    const auto transpose = [&](mlir::Value x,
                               llvm::ArrayRef<int64_t> order) -> mlir::Value {
      return nn::TransposeOp::create(builder, op.getLoc(), x, order);
    };
    const auto moved = [&](llvm::ArrayRef<int64_t> values) {
      llvm::SmallVector<int64_t> permuted;
      for (const int64_t dim : last) permuted.push_back(values[dim]);
      return permuted;
    };
    auto inner = nn::ReduceWindowGradOp::create(
        builder, op.getLoc(),
        op.getType().clone(moved(op.getType().getShape())), op.getKind(),
        transpose(op.getResultGrad(), last), transpose(op.getInput(), last),
        moved(op.getWindow()), moved(op.getStrides()), moved(op.getDilations()),
        moved(op.getLow()), moved(op.getHigh()));
    op.replaceAllUsesWith(transpose(inner, first));
    op.erase();
    return inner;
  }

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
