// Replaces transposes of a product's operands by other dimension numbers; see
// passes.td.
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

class AbsorbTransposesPass
    : public impl::AbsorbTransposesPassBase<AbsorbTransposesPass> {
  void runOnOperation() override {
    mlir::RewritePatternSet patterns(&getContext());
    patterns.add<AbsorbTransposes>(&getContext(), absorbed);
    if (failed(
            mlir::applyPatternsGreedily(getOperation(), std::move(patterns)))) {
      signalPassFailure();
    }
  }
};

}  // namespace
}  // namespace partita::simplify
