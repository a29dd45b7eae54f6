// Replaces transposes of a product's operands by other dimension numbers, and a
// transpose of its result by an exchange of the operands; see passes.td.
#include "compiler/simplify/passes.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace partita::simplify {

#define GEN_PASS_DEF_ABSORBTRANSPOSESPASS
#include "compiler/simplify/passes.h.inc"

namespace {

using mlir::ArrayRef;
using mlir::SmallVector;
using mlir::Value;

// An operand of a product, with its batch and contracted dimensions.
struct Side {
  Value value;
  SmallVector<int64_t> batch, contract;

  // Replaces the value by the operand of its transpose. Returns false if there
  // is no transpose, or if the product's result would have another order of
  // dimensions.
  bool absorb() {
    auto transpose = value.getDefiningOp<nn::TransposeOp>();
    if (!transpose) return false;
    const ArrayRef<int64_t> perm = transpose.getPerm();
    SmallVector<int64_t> free;
    for (auto [dim, before] : llvm::enumerate(perm)) {
      if (llvm::is_contained(batch, dim) || llvm::is_contained(contract, dim))
        continue;
      free.push_back(before);
    }
    if (!llvm::is_sorted(free)) return false;
    value = transpose.getInput();
    for (int64_t& dim : batch) dim = perm[dim];
    for (int64_t& dim : contract) dim = perm[dim];
    return true;
  }
};

class AbsorbTransposes : public mlir::OpRewritePattern<nn::DotGeneralOp> {
 public:
  AbsorbTransposes(mlir::MLIRContext* context, mlir::Pass::Statistic& absorbed)
      : OpRewritePattern(context), absorbed_(absorbed) {}

  mlir::LogicalResult matchAndRewrite(
      nn::DotGeneralOp op, mlir::PatternRewriter& rewriter) const override {
    Side lhs{op.getLhs(), llvm::to_vector(op.getLhsBatch()),
             llvm::to_vector(op.getLhsContract())};
    Side rhs{op.getRhs(), llvm::to_vector(op.getRhsBatch()),
             llvm::to_vector(op.getRhsContract())};
    const int count = lhs.absorb() + rhs.absorb();
    if (count == 0) return mlir::failure();
    rewriter.replaceOpWithNewOp<nn::DotGeneralOp>(op, lhs.value, rhs.value,
                                                  lhs.batch, rhs.batch,
                                                  lhs.contract, rhs.contract);
    absorbed_ += count;
    return mlir::success();
  }

 private:
  mlir::Pass::Statistic& absorbed_;
};

// A transpose that only exchanges the free dimensions of both operands is the
// product of the operands exchanged. JAX writes gradients of weights so.
class ExchangeOperands : public mlir::OpRewritePattern<nn::TransposeOp> {
 public:
  ExchangeOperands(mlir::MLIRContext* context, mlir::Pass::Statistic& absorbed)
      : OpRewritePattern(context), absorbed_(absorbed) {}

  mlir::LogicalResult matchAndRewrite(
      nn::TransposeOp op, mlir::PatternRewriter& rewriter) const override {
    auto dot = op.getInput().getDefiningOp<nn::DotGeneralOp>();
    if (!dot || !dot->hasOneUse()) return mlir::failure();
    const int64_t rank = op.getType().getRank();
    const auto batch = static_cast<int64_t>(dot.getLhsBatch().size());
    const int64_t lhs_free =
        mlir::cast<mlir::RankedTensorType>(dot.getLhs().getType()).getRank() -
        batch - static_cast<int64_t>(dot.getLhsContract().size());
    // Without free dimensions on a side, nothing is exchanged.
    if (lhs_free == 0 || lhs_free == rank - batch) return mlir::failure();
    for (auto [dim, before] : llvm::enumerate(op.getPerm())) {
      const auto i = static_cast<int64_t>(dim);
      const int64_t wanted = i < batch ? i
                             : i < rank - lhs_free
                                 ? i + lhs_free
                                 : i - (rank - batch - lhs_free);
      if (before != wanted) return mlir::failure();
    }
    rewriter.replaceOpWithNewOp<nn::DotGeneralOp>(
        op, dot.getRhs(), dot.getLhs(), dot.getRhsBatch(), dot.getLhsBatch(),
        dot.getRhsContract(), dot.getLhsContract());
    ++absorbed_;
    return mlir::success();
  }

 private:
  mlir::Pass::Statistic& absorbed_;
};

class AbsorbTransposesPass
    : public impl::AbsorbTransposesPassBase<AbsorbTransposesPass> {
  void runOnOperation() override {
    mlir::RewritePatternSet patterns(&getContext());
    patterns.add<AbsorbTransposes, ExchangeOperands>(&getContext(), absorbed);
    if (failed(
            mlir::applyPatternsGreedily(getOperation(), std::move(patterns)))) {
      signalPassFailure();
    }
  }
};

}  // namespace
}  // namespace partita::simplify
