// The norm of a transposed image is the transposed norm of the image, up to the
// order of its sums.
#include "compiler/kernels/image_norms.h"

#include <numeric>

#include "mlir/IR/Matchers.h"

namespace partita::kernels {
namespace {

using llvm::ArrayRef;
using mlir::Value;

// True if `value` is absent, or a constant with equal elements.
bool isUniform(Value value) {
  mlir::DenseElementsAttr constant;
  return !value || (mlir::matchPattern(value, mlir::m_Constant(&constant)) &&
                    constant.isSplat());
}

ArrayRef<int64_t> shapeOf(Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType()).getShape();
}

int64_t product(ArrayRef<int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1},
                         std::multiplies<int64_t>());
}

// norm(transpose(x)) = transpose(norm(x))
class SinkBelowImageNorm : public mlir::OpRewritePattern<nn::LayerNormOp> {
  using OpRewritePattern::OpRewritePattern;
  mlir::LogicalResult matchAndRewrite(
      nn::LayerNormOp op, mlir::PatternRewriter& rewriter) const override {
    const std::optional<ImageNorm> norm = matchImageNorm(op);
    if (!norm) return mlir::failure();
    auto transpose = norm->image.getDefiningOp<nn::TransposeOp>();
    if (!transpose || !norm->allows(transpose.getPerm()))
      return mlir::failure();
    const Value source = transpose.getInput();
    const Value joined = nn::ReshapeOp::create(rewriter, op.getLoc(),
                                               op.getInput().getType(), source);
    auto moved = llvm::cast<nn::LayerNormOp>(rewriter.clone(*op));
    moved.getInputMutable().assign(joined);
    const Value image =
        nn::ReshapeOp::create(rewriter, op.getLoc(), source.getType(), moved);
    const Value result = nn::TransposeOp::create(rewriter, op.getLoc(), image,
                                                 transpose.getPerm());
    for (nn::ReshapeOp old : norm->images) rewriter.replaceOp(old, result);
    rewriter.eraseOp(op);
    return mlir::success();
  }
};

}  // namespace

bool ImageNorm::allows(ArrayRef<int64_t> perm) const {
  for (int64_t dim = 0; dim < first; ++dim)
    if (perm[dim] != dim) return false;
  return true;
}

std::optional<ImageNorm> matchImageNorm(nn::LayerNormOp norm) {
  // Another user of the joined image, e.g. the norm's gradient, would need it
  // in its own order.
  auto joined = norm.getInput().getDefiningOp<nn::ReshapeOp>();
  if (!joined || !joined->hasOneUse() || norm->use_empty() ||
      !isUniform(norm.getScale()) || !isUniform(norm.getBias()))
    return std::nullopt;
  ImageNorm result = {norm, joined.getInput(), {}, 0};
  const ArrayRef<int64_t> image = shapeOf(result.image);
  const int64_t numbers =
      product(shapeOf(norm.getInput()).drop_front(norm.getAxis()));
  const auto rank = static_cast<int64_t>(image.size());
  while (result.first < rank &&
         product(image.drop_front(result.first)) != numbers)
    ++result.first;
  if (result.first == rank) return std::nullopt;
  for (mlir::Operation* user : norm->getUsers()) {
    auto back = llvm::dyn_cast<nn::ReshapeOp>(user);
    if (!back || back.getType() != result.image.getType()) return std::nullopt;
    result.images.push_back(back);
  }
  return result;
}

void addSinkBelowImageNorm(mlir::RewritePatternSet& patterns) {
  patterns.add<SinkBelowImageNorm>(patterns.getContext());
}

}  // namespace partita::kernels
