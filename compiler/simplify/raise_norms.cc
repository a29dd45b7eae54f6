// Raises layer norms and RMS norms from means, squares and roots, and joins
// scales and biases that follow.
#include "compiler/simplify/raise_patterns.h"
#include "compiler/simplify/view.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace partita::simplify {
namespace {

using mlir::ArrayRef;
using mlir::LogicalResult;
using mlir::PatternRewriter;
using mlir::SmallVector;
using mlir::Value;
namespace arith = mlir::arith;
namespace math = mlir::math;

// x * x
Value matchSquare(Value value) {
  auto mul = value.getDefiningOp<arith::MulFOp>();
  return mul && mul.getLhs() == mul.getRhs() ? mul.getLhs() : Value();
}

// Matches x - mean(x), where the reduction is over x itself.
std::optional<Reduced> matchCentered(Value value) {
  auto sub = value.getDefiningOp<arith::SubFOp>();
  if (!sub) return std::nullopt;
  const std::optional<Reduced> mean =
      matchMean(viewOf(sub.getRhs()), tensorType(value).getShape());
  return mean && mean->input == sub.getLhs() ? mean : std::nullopt;
}

// The divisor of a norm: the root of a mean of squares plus epsilon.
struct Deviation {
  Reduced squares;  // the mean is taken of squares.input * squares.input, or of
                    // its centered squares
  bool centered;
  double epsilon;
  std::optional<View> scale;  // a factor multiplied into the inverse root
};

// Matches mean(x^2), mean((x - mean(x))^2), or mean(x^2) - mean(x)^2.
std::optional<Deviation> matchMeanOfSquares(View view,
                                            ArrayRef<int64_t> shape) {
  view = peel(view);
  // A variance computed as a difference is clamped at 0.
  if (auto max = view.value.getDefiningOp<arith::MaximumFOp>()) {
    for (unsigned operand : {0u, 1u}) {
      if (splatOf(max->getOperand(1 - operand)) == 0.0)
        return matchMeanOfSquares(operandOf(view, operand), shape);
    }
  }
  if (view.value.getDefiningOp<arith::SubFOp>()) {
    const std::optional<Deviation> raw =
        matchMeanOfSquares(operandOf(view, 0), shape);
    const View square = peel(operandOf(view, 1));
    if (!raw || raw->centered || !matchSquare(square.value))
      return std::nullopt;
    const std::optional<Reduced> mean = matchMean(operandOf(square, 0), shape);
    if (!mean || !(*mean == raw->squares)) return std::nullopt;
    return Deviation{*mean, true, 0, std::nullopt};
  }
  const std::optional<Reduced> mean = matchMean(view, shape);
  const Value root = mean ? matchSquare(mean->input) : Value();
  if (!root) return std::nullopt;
  const std::optional<Reduced> centered = matchCentered(root);
  if (centered && centered->dims == mean->dims)
    return Deviation{*centered, true, 0, std::nullopt};
  return Deviation{{root, mean->dims}, false, 0, std::nullopt};
}

// Matches mean of squares + epsilon.
std::optional<Deviation> matchVariance(View view, ArrayRef<int64_t> shape) {
  view = peel(view);
  if (!view.value.getDefiningOp<arith::AddFOp>())
    return matchMeanOfSquares(view, shape);
  for (unsigned operand : {0u, 1u}) {
    const View epsilon = operandOf(view, 1 - operand);
    const std::optional<double> number = splatOf(epsilon.value);
    std::optional<Deviation> squares =
        number ? matchMeanOfSquares(operandOf(view, operand), shape)
               : std::nullopt;
    if (!squares) continue;
    squares->epsilon = *number;
    return squares;
  }
  return std::nullopt;
}

// Matches sqrt(variance).
std::optional<Deviation> matchRoot(View view, ArrayRef<int64_t> shape) {
  view = peel(view);
  return view.value.getDefiningOp<math::SqrtOp>()
             ? matchVariance(operandOf(view, 0), shape)
             : std::nullopt;
}

// Matches rsqrt(variance), 1 / sqrt(variance), or one of them times a scale.
std::optional<Deviation> matchInverseRoot(View view, ArrayRef<int64_t> shape) {
  view = peel(view);
  mlir::Operation* op = view.value.getDefiningOp();
  if (mlir::isa_and_nonnull<math::RsqrtOp>(op))
    return matchVariance(operandOf(view, 0), shape);
  if (mlir::isa_and_nonnull<arith::DivFOp>(op)) {
    return splatOf(op->getOperand(0)) == 1.0
               ? matchRoot(operandOf(view, 1), shape)
               : std::nullopt;
  }
  if (!mlir::isa_and_nonnull<arith::MulFOp>(op)) return std::nullopt;
  for (unsigned operand : {0u, 1u}) {
    std::optional<Deviation> deviation =
        matchInverseRoot(operandOf(view, operand), shape);
    if (!deviation || deviation->scale) continue;
    deviation->scale = operandOf(view, 1 - operand);
    return deviation;
  }
  return std::nullopt;
}

// Returns `view` as a tensor of the dimensions `dims`; null if it does not
// repeat along all other dimensions.
Value asVectorOver(PatternRewriter& rewriter, View view, ArrayRef<int64_t> dims,
                   ArrayRef<int64_t> shape) {
  view = peel(view);
  SmallVector<int64_t> sizes, large;
  for (int64_t dim : dims) {
    sizes.push_back(shape[dim]);
    if (shape[dim] != 1) large.push_back(dim);
  }
  if (view.largeDims() != large) return {};
  return buildReshape(rewriter, view.value.getLoc(), view.value, sizes);
}

// Returns a permutation that moves `dims` to the end.
SmallVector<int64_t> movedLast(ArrayRef<int64_t> dims, int64_t rank) {
  SmallVector<int64_t> perm;
  for (int64_t dim : llvm::seq<int64_t>(rank)) {
    if (!llvm::is_contained(dims, dim)) perm.push_back(dim);
  }
  perm.append(dims.begin(), dims.end());
  return perm;
}

SmallVector<int64_t> inverseOf(ArrayRef<int64_t> perm) {
  SmallVector<int64_t> inverse(perm.size());
  for (auto [i, dim] : llvm::enumerate(perm)) inverse[dim] = i;
  return inverse;
}

// Base of patterns rooted at any operation, with both counters.
class NormPattern : public mlir::RewritePattern {
 public:
  NormPattern(llvm::StringRef root, mlir::MLIRContext* context,
              mlir::Pass::Statistic& layer_norms,
              mlir::Pass::Statistic& rms_norms)
      : RewritePattern(root, /*benefit=*/1, context),
        layer_norms_(layer_norms),
        rms_norms_(rms_norms) {}

 protected:
  // Builds the norm of `numerator`, which is the deviation's tensor or its
  // centered form.
  LogicalResult raise(mlir::Operation* op, Value numerator,
                      const Deviation& deviation,
                      PatternRewriter& rewriter) const {
    const Reduced& squares = deviation.squares;
    if (deviation.centered) {
      const std::optional<Reduced> centered = matchCentered(numerator);
      if (!centered || !(*centered == squares)) return mlir::failure();
    } else if (numerator != squares.input) {
      return mlir::failure();
    }
    const mlir::RankedTensorType type = tensorType(squares.input);
    Value scale;
    if (deviation.scale) {
      scale = asVectorOver(rewriter, *deviation.scale, squares.dims,
                           type.getShape());
      if (!scale) return mlir::failure();
    }
    const SmallVector<int64_t> perm = movedLast(squares.dims, type.getRank());
    const int64_t axis = type.getRank() - squares.dims.size();
    const mlir::Location loc = op->getLoc();
    const Value input = buildTranspose(rewriter, loc, squares.input, perm);
    Value norm;
    if (deviation.centered) {
      norm =
          nn::LayerNormOp::create(rewriter, loc, input.getType(), input, scale,
                                  Value(), rewriter.getI64IntegerAttr(axis),
                                  rewriter.getF64FloatAttr(deviation.epsilon));
      ++layer_norms_;
    } else {
      norm = nn::RmsNormOp::create(rewriter, loc, input.getType(), input, scale,
                                   rewriter.getI64IntegerAttr(axis),
                                   rewriter.getF64FloatAttr(deviation.epsilon));
      ++rms_norms_;
    }
    rewriter.replaceOp(op,
                       buildTranspose(rewriter, loc, norm, inverseOf(perm)));
    return mlir::success();
  }

 private:
  mlir::Pass::Statistic &layer_norms_, &rms_norms_;
};

// Matches x / sqrt(...).
class NormFromQuotient : public NormPattern {
 public:
  NormFromQuotient(mlir::MLIRContext* context,
                   mlir::Pass::Statistic& layer_norms,
                   mlir::Pass::Statistic& rms_norms)
      : NormPattern(arith::DivFOp::getOperationName(), context, layer_norms,
                    rms_norms) {}

  LogicalResult matchAndRewrite(mlir::Operation* op,
                                PatternRewriter& rewriter) const override {
    auto type =
        mlir::dyn_cast<mlir::RankedTensorType>(op->getResult(0).getType());
    if (!type) return mlir::failure();
    const std::optional<Deviation> deviation =
        matchRoot(viewOf(op->getOperand(1)), type.getShape());
    return deviation ? raise(op, op->getOperand(0), *deviation, rewriter)
                     : mlir::failure();
  }
};

// Matches x * rsqrt(...).
class NormFromProduct : public NormPattern {
 public:
  NormFromProduct(mlir::MLIRContext* context,
                  mlir::Pass::Statistic& layer_norms,
                  mlir::Pass::Statistic& rms_norms)
      : NormPattern(arith::MulFOp::getOperationName(), context, layer_norms,
                    rms_norms) {}

  LogicalResult matchAndRewrite(mlir::Operation* op,
                                PatternRewriter& rewriter) const override {
    auto type =
        mlir::dyn_cast<mlir::RankedTensorType>(op->getResult(0).getType());
    if (!type) return mlir::failure();
    for (unsigned operand : {0u, 1u}) {
      const std::optional<Deviation> deviation = matchInverseRoot(
          viewOf(op->getOperand(1 - operand)), type.getShape());
      if (deviation &&
          succeeded(raise(op, op->getOperand(operand), *deviation, rewriter)))
        return mlir::success();
    }
    return mlir::failure();
  }
};

// A norm with a single use, optionally followed by a transpose.
struct NormUse {
  mlir::Operation* norm;
  SmallVector<int64_t>
      perm;  // of the transpose; the identity where there is none
  SmallVector<int64_t>
      dims;  // the normalised dimensions, as numbered behind the transpose

  static std::optional<NormUse> match(Value value) {
    auto transpose = value.getDefiningOp<nn::TransposeOp>();
    const Value result = transpose ? transpose.getInput() : value;
    mlir::Operation* norm = result.getDefiningOp();
    if (!value.hasOneUse() || !result.hasOneUse() ||
        !mlir::isa_and_nonnull<nn::LayerNormOp, nn::RmsNormOp>(norm)) {
      return std::nullopt;
    }
    const int64_t axis =
        norm->getAttrOfType<mlir::IntegerAttr>("axis").getInt();
    const SmallVector<int64_t> perm =
        transpose ? llvm::to_vector(transpose.getPerm()) : viewOf(value).dims;
    return NormUse{norm, perm,
                   llvm::to_vector(llvm::drop_begin(inverseOf(perm), axis))};
  }

  Value scale() const {
    if (auto layer_norm = mlir::dyn_cast<nn::LayerNormOp>(norm))
      return layer_norm.getScale();
    return mlir::cast<nn::RmsNormOp>(norm).getScale();
  }

  // Replaces `user` by the norm with this scale and bias.
  void replace(mlir::Operation* user, Value scale, Value bias,
               PatternRewriter& rewriter) const {
    const mlir::Location loc = norm->getLoc();
    Value again;
    if (auto layer_norm = mlir::dyn_cast<nn::LayerNormOp>(norm)) {
      again = nn::LayerNormOp::create(
          rewriter, loc, layer_norm.getType(), layer_norm.getInput(), scale,
          bias, layer_norm.getAxisAttr(), layer_norm.getEpsilonAttr());
    } else {
      auto rms_norm = mlir::cast<nn::RmsNormOp>(norm);
      again = nn::RmsNormOp::create(
          rewriter, loc, rms_norm.getType(), rms_norm.getInput(), scale,
          rms_norm.getAxisAttr(), rms_norm.getEpsilonAttr());
    }
    rewriter.replaceOp(user,
                       buildTranspose(rewriter, user->getLoc(), again, perm));
  }
};

// Matches norm(x) * scale.
LogicalResult joinScale(arith::MulFOp op, PatternRewriter& rewriter) {
  if (!mlir::isa<mlir::RankedTensorType>(op.getType())) return mlir::failure();
  for (unsigned operand : {0u, 1u}) {
    const std::optional<NormUse> use = NormUse::match(op->getOperand(operand));
    if (!use || use->scale()) continue;
    auto layer_norm = mlir::dyn_cast<nn::LayerNormOp>(use->norm);
    if (layer_norm && layer_norm.getBias()) continue;
    const View factor = viewOf(op->getOperand(1 - operand));
    const Value scale =
        asVectorOver(rewriter, factor, use->dims, tensorType(op).getShape());
    if (!scale) continue;
    use->replace(op, scale, Value(), rewriter);
    return mlir::success();
  }
  return mlir::failure();
}

// Matches layer_norm(x) + bias.
LogicalResult joinBias(arith::AddFOp op, PatternRewriter& rewriter) {
  if (!mlir::isa<mlir::RankedTensorType>(op.getType())) return mlir::failure();
  for (unsigned operand : {0u, 1u}) {
    const std::optional<NormUse> use = NormUse::match(op->getOperand(operand));
    auto layer_norm =
        use ? mlir::dyn_cast<nn::LayerNormOp>(use->norm) : nullptr;
    if (!layer_norm || layer_norm.getBias()) continue;
    const View summand = viewOf(op->getOperand(1 - operand));
    const Value bias =
        asVectorOver(rewriter, summand, use->dims, tensorType(op).getShape());
    if (!bias) continue;
    use->replace(op, layer_norm.getScale(), bias, rewriter);
    return mlir::success();
  }
  return mlir::failure();
}

}  // namespace

void populateRaiseNorms(mlir::RewritePatternSet& patterns,
                        mlir::Pass::Statistic& layer_norms,
                        mlir::Pass::Statistic& rms_norms) {
  patterns.add<NormFromQuotient, NormFromProduct>(patterns.getContext(),
                                                  layer_norms, rms_norms);
  patterns.add(joinScale);
  patterns.add(joinBias);
}

}  // namespace partita::simplify
