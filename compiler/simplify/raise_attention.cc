// Builds nn.attention from a match: operands in its order, one bias, and the
// scale as an attribute.
#include <limits>

#include "compiler/simplify/attention_match.h"
#include "compiler/simplify/constant_mask.h"
#include "compiler/simplify/raise_patterns.h"
#include "compiler/simplify/view.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace partita::simplify {
namespace {

using mlir::ArrayRef;
using mlir::LogicalResult;
using mlir::PatternRewriter;
using mlir::RankedTensorType;
using mlir::SmallVector;
using mlir::Value;
namespace arith = mlir::arith;

int64_t productOf(ArrayRef<int64_t> sizes) { return llvm::product_of(sizes); }

// Returns batch and heads of the operation to build.
std::pair<int64_t, int64_t> headsOf(const AttentionMatch& match) {
  if (match.heads) return *match.heads;
  const SmallVector<int64_t> sizes = match.q.batchSizes();
  if (sizes.size() > 1)
    return {productOf(ArrayRef(sizes).drop_back()), sizes.back()};
  // A reshape has often merged batch and heads.
  if (auto reshape = match.q.value.getDefiningOp<nn::ReshapeOp>();
      reshape && sizes.size() == 1) {
    const ArrayRef<int64_t> from = reshape.getInput().getType().getShape(),
                            to = reshape.getType().getShape();
    if (from.size() == 4 && match.q.dims.batch.front() == 0 &&
        from.take_back(2) == to.take_back(2)) {
      return {from[0], from[1]};
    }
  }
  return {productOf(sizes), 1};
}

// Removes a splat factor from `value` and multiplies it into `scale`.
Value withoutFactor(PatternRewriter& rewriter, Value value, double& scale) {
  mlir::Operation* op = value.getDefiningOp();
  if (mlir::isa_and_nonnull<arith::MulFOp, arith::DivFOp>(op)) {
    const bool divides = mlir::isa<arith::DivFOp>(op);
    for (unsigned operand : {0u, 1u}) {
      if (divides && operand == 1) break;
      const std::optional<double> factor = splatOf(op->getOperand(1 - operand));
      if (!factor || *factor == 0) continue;
      scale *= divides ? 1 / *factor : *factor;
      return withoutFactor(rewriter, op->getOperand(operand), scale);
    }
    return value;
  }
  if (!mlir::isa_and_nonnull<nn::TransposeOp, nn::ReshapeOp>(op)) return value;
  const Value inner = op->getOperand(0),
              bare = withoutFactor(rewriter, inner, scale);
  if (inner == bare) return value;
  if (auto transpose = mlir::dyn_cast<nn::TransposeOp>(op)) {
    return buildTranspose(rewriter, op->getLoc(), bare, transpose.getPerm());
  }
  return buildReshape(rewriter, op->getLoc(), bare,
                      tensorType(value).getShape());
}

// Returns keys or values before heads were repeated for groups of queries, as
// [B, G, S, h]; `value` itself if they were not.
Value withoutRepeats(PatternRewriter& rewriter, Value value) {
  auto reshape = value.getDefiningOp<nn::ReshapeOp>();
  const ArrayRef<int64_t> shape = tensorType(value).getShape();
  if (!reshape || reshape.getInput().getType().getRank() != 5) return value;
  const ArrayRef<int64_t> groups = reshape.getInput().getType().getShape();
  const View view = peel(viewOf(reshape.getInput()));
  const bool splits_heads =
      groups[0] == shape[0] && groups[3] == shape[2] && groups[4] == shape[3];
  SmallVector<int64_t> whole;
  for (int64_t dim : {0, 1, 3, 4}) {
    if (groups[dim] != 1) whole.push_back(dim);
  }
  if (!splits_heads || view.largeDims() != whole) return value;
  return buildReshape(rewriter, value.getLoc(), view.value,
                      {groups[0], groups[1], groups[3], groups[4]});
}

class AttentionBuilder {
 public:
  AttentionBuilder(PatternRewriter& rewriter, nn::DotGeneralOp root,
                   AttentionMatch& match)
      : rewriter_(rewriter), root_(root), loc_(root.getLoc()), match_(match) {
    std::tie(batch_, heads_) = headsOf(match);
  }

  LogicalResult build() {
    const mlir::Type element = tensorType(match_.q.value).getElementType();
    for (const Matrix* matrix : {&match_.k, &match_.v}) {
      if (tensorType(matrix->value).getElementType() != element)
        return mlir::failure();
    }
    const Value q = withoutFactor(rewriter_, inOrder(match_.q), match_.scale);
    Value k = withoutFactor(rewriter_, inOrder(match_.k), match_.scale);
    Value v = inOrder(match_.v);
    const Value few_k = withoutRepeats(rewriter_, k),
                few_v = withoutRepeats(rewriter_, v);
    if (tensorType(few_k).getDimSize(1) == tensorType(few_v).getDimSize(1))
      k = few_k, v = few_v;
    const Value bias = buildBias(element);
    const RankedTensorType type = RankedTensorType::get(
        {batch_, heads_, match_.q.rows(), match_.v.columns()}, element);
    auto attention =
        nn::AttentionOp::create(rewriter_, loc_, type, q, k, v, bias,
                                rewriter_.getF64FloatAttr(match_.scale),
                                /*causal_offset=*/mlir::IntegerAttr(),
                                rewriter_.getF64FloatAttr(match_.softcap));
    setMask(attention, mask_);
    rewriter_.replaceOp(root_, asRootResult(attention.getResult()));
    return mlir::success();
  }

 private:
  int64_t keys() const { return match_.k.rows(); }

  // Returns the matrix as [B, N, rows, columns].
  Value inOrder(const Matrix& matrix) {
    SmallVector<int64_t> perm = matrix.dims.batch;
    perm.append({matrix.dims.row, matrix.dims.column});
    const Value ordered = buildTranspose(rewriter_, loc_, matrix.value, perm);
    return buildReshape(rewriter_, loc_, ordered,
                        {batch_, heads_, matrix.rows(), matrix.columns()});
  }

  // Returns a bias in the same order, with size 1 where it repeats.
  Value inOrderSmall(const ScoreBias& bias) {
    const View view = peel(bias.value);
    const MatrixDims& dims = bias.scores.dims;
    const bool names_heads =
        bias.scores.batchSizes() == SmallVector<int64_t>{batch_, heads_};
    SmallVector<int64_t> places, large, sizes(4, 1);
    for (auto [size, dim] :
         llvm::zip_equal(tensorType(view.value).getShape(), view.dims)) {
      if (size == 1) continue;
      const int64_t place = dim == dims.row             ? 2
                            : dim == dims.column        ? 3
                            : dim == dims.batch.front() ? 0
                                                        : 1;
      if (place < 2 && !names_heads) {
        const Value whole = buildBroadcast(
            rewriter_, loc_, view, tensorType(bias.scores.value).getShape());
        return inOrder({whole, dims});
      }
      places.push_back(place);
      large.push_back(size);
      sizes[place] = size;
    }
    Value value = view.value;
    if (!llvm::is_sorted(places)) {
      SmallVector<int64_t> perm =
          llvm::to_vector(llvm::seq<int64_t>(places.size()));
      llvm::sort(perm,
                 [&](int64_t a, int64_t b) { return places[a] < places[b]; });
      value = buildTranspose(rewriter_, loc_,
                             buildReshape(rewriter_, loc_, value, large), perm);
    }
    return buildReshape(rewriter_, loc_, value, sizes);
  }

  Value converted(Value value, mlir::Type element) {
    const RankedTensorType from = tensorType(value),
                           to = RankedTensorType::get(from.getShape(), element);
    if (from == to) return value;
    if (from.getElementTypeBitWidth() < to.getElementTypeBitWidth()) {
      return arith::ExtFOp::create(rewriter_, loc_, to, value);
    }
    return arith::TruncFOp::create(rewriter_, loc_, to, value);
  }

  // Returns a bias as a summand, with size 1 where it repeats.
  Value summand(const ScoreBias& bias, mlir::Type element) {
    const Value small = inOrderSmall(bias);
    const RankedTensorType type =
        RankedTensorType::get(tensorType(small).getShape(), element);
    if (bias.kind == ScoreBias::Kind::add) {
      const Value value = converted(small, element);
      if (bias.factor == 1) return value;
      return arith::MulFOp::create(
          rewriter_, loc_, value,
          buildSplat(rewriter_, loc_, type, bias.factor));
    }
    // The lowest finite number: scores vanish when added to it, so a query that
    // sees no key weighs all keys equally, as with the fill.
    const auto& semantics =
        mlir::cast<mlir::FloatType>(element).getFloatSemantics();
    const mlir::Attribute lowest = rewriter_.getFloatAttr(
        element, mlir::APFloat::getLargest(semantics, /*Negative=*/true));
    const Value low = arith::ConstantOp::create(
        rewriter_, loc_, mlir::DenseElementsAttr::get(type, lowest));
    const Value zero = buildSplat(rewriter_, loc_, type, 0);
    const bool sees = bias.kind == ScoreBias::Kind::visible;
    return arith::SelectOp::create(rewriter_, loc_, small, sees ? zero : low,
                                   sees ? low : zero);
  }

  // Appends the bias. If one of several summands is a constant mask, appends
  // them separately.
  static void splitConstantMask(const ScoreBias& bias,
                                SmallVector<ScoreBias>& parts) {
    const View sum = peel(bias.value);
    if (bias.kind == ScoreBias::Kind::add &&
        sum.value.getDefiningOp<arith::AddFOp>()) {
      for (unsigned operand : {0u, 1u}) {
        ScoreBias part = bias, rest = bias;
        part.value = operandOf(sum, operand);
        rest.value = operandOf(sum, 1 - operand);
        if (!matchConstantMask(part)) continue;
        parts.push_back(part);
        return splitConstantMask(rest, parts);
      }
    }
    parts.push_back(bias);
  }

  Value buildBias(mlir::Type element) {
    SmallVector<ScoreBias> parts;
    for (const ScoreBias& bias : match_.biases) splitConstantMask(bias, parts);
    Value sum;
    for (const ScoreBias& bias : parts) {
      const std::optional<ConstantMask> mask = matchConstantMask(bias);
      const std::optional<ConstantMask> both =
          mask ? intersect(mask_, *mask, match_.q.rows(), keys())
               : std::nullopt;
      if (both) {
        mask_ = *both;
        continue;
      }
      const Value next = summand(bias, element);
      sum = sum ? addRepeated(sum, next) : next;
    }
    return sum;
  }

  Value addRepeated(Value a, Value b) {
    SmallVector<int64_t> sizes;
    for (auto [x, y] :
         llvm::zip_equal(tensorType(a).getShape(), tensorType(b).getShape())) {
      sizes.push_back(std::max(x, y));
    }
    a = buildBroadcast(rewriter_, loc_, viewOf(a), sizes);
    b = buildBroadcast(rewriter_, loc_, viewOf(b), sizes);
    return arith::AddFOp::create(rewriter_, loc_, a, b);
  }

  // Converts [B, N, L, hv] to the shape of the product's result.
  Value asRootResult(Value attention) {
    SmallVector<int64_t> sizes = match_.v.batchSizes();
    const int64_t batch = sizes.size();
    sizes.append({match_.q.rows(), match_.v.columns()});
    Value result = buildReshape(rewriter_, loc_, attention, sizes);
    if (match_.result_transposed) {
      SmallVector<int64_t> perm = llvm::to_vector(llvm::seq<int64_t>(batch));
      perm.append({batch + 1, batch});
      result = buildTranspose(rewriter_, loc_, result, perm);
    }
    return result;
  }

  PatternRewriter& rewriter_;
  nn::DotGeneralOp root_;
  mlir::Location loc_;
  AttentionMatch& match_;
  int64_t batch_, heads_;
  ConstantMask mask_;
};

class AttentionFromProduct : public mlir::OpRewritePattern<nn::DotGeneralOp> {
 public:
  AttentionFromProduct(mlir::MLIRContext* context,
                       mlir::Pass::Statistic& raised)
      : OpRewritePattern(context), raised_(raised) {}

  LogicalResult matchAndRewrite(nn::DotGeneralOp op,
                                PatternRewriter& rewriter) const override {
    if (!mlir::isa<mlir::FloatType>(op.getType().getElementType()))
      return mlir::failure();
    std::optional<AttentionMatch> match = matchAttention(op);
    if (!match || failed(AttentionBuilder(rewriter, op, *match).build()))
      return mlir::failure();
    ++raised_;
    return mlir::success();
  }

 private:
  mlir::Pass::Statistic& raised_;
};

// Replaces a constant bias of causality, a window, sinks or blocks of keys, as
// PyTorch's exporters write it, by the attributes, and removes one that hides
// nothing.
class MaskFromBias : public mlir::OpRewritePattern<nn::AttentionOp> {
 public:
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::AttentionOp op,
                                PatternRewriter& rewriter) const override {
    const Value bias = op.getBias();
    if (!bias || op.getCausalOffset() || op.getBlocks()) return mlir::failure();
    const ArrayRef<int64_t> shape = tensorType(bias).getShape();
    if (shape[2] != op.getQ().getType().getDimSize(2) ||
        shape[3] != op.getK().getType().getDimSize(2))
      return mlir::failure();
    const std::optional<ConstantMask> mask = matchConstantMask(
        {ScoreBias::Kind::add, viewOf(bias), {bias, {{0, 1}, 2, 3}}, 1});
    if (!mask) return mlir::failure();
    rewriter.modifyOpInPlace(op, [&] {
      op.getBiasMutable().clear();
      setMask(op, *mask);
    });
    return mlir::success();
  }
};

// Takes constant masks out of a bias that is -inf where one of several
// conditions does not hold, as PyTorch's exporters write a window together with
// padding.
class MasksFromConditions : public mlir::OpRewritePattern<nn::AttentionOp> {
 public:
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::AttentionOp op,
                                PatternRewriter& rewriter) const override {
    const Value bias = op.getBias();
    if (!bias || op.getCausalOffset() || op.getBlocks()) return mlir::failure();
    const RankedTensorType type = tensorType(bias);
    const int64_t queries = op.getQ().getType().getDimSize(2),
                  keys = op.getK().getType().getDimSize(2);
    const View view = peel(viewOf(bias));
    auto select = view.value.getDefiningOp<arith::SelectOp>();
    if (!select || type.getDimSize(2) != queries ||
        type.getDimSize(3) != keys || splatOf(select.getTrueValue()) != 0.0 ||
        splatOf(select.getFalseValue()) !=
            -std::numeric_limits<double>::infinity())
      return mlir::failure();
    SmallVector<View> conditions, rest;
    collect(operandOf(view, 0), conditions);
    ConstantMask mask;
    for (const View& condition : conditions) {
      const auto found = matchConstantMask(
          {ScoreBias::Kind::visible, condition, {bias, {{0, 1}, 2, 3}}, 1});
      const auto both =
          found ? intersect(mask, *found, queries, keys) : std::nullopt;
      if (both)
        mask = *both;
      else
        rest.push_back(condition);
    }
    if (rest.empty() || rest.size() == conditions.size())
      return mlir::failure();
    const Value smaller = biasOf(rewriter, op.getLoc(), rest, type);
    rewriter.modifyOpInPlace(op, [&] {
      op.getBiasMutable().assign(smaller);
      setMask(op, mask);
    });
    return mlir::success();
  }

 private:
  // More conditions stay joined, as joined values may repeat one another.
  static constexpr size_t kMostConditions = 32;

  static void collect(View condition, SmallVector<View>& conditions) {
    condition = peel(condition);
    if (!condition.value.getDefiningOp<arith::AndIOp>() ||
        conditions.size() >= kMostConditions)
      return conditions.push_back(condition);
    collect(operandOf(condition, 0), conditions);
    collect(operandOf(condition, 1), conditions);
  }

  // Returns the bias of these conditions, with size 1 where it repeats.
  static Value biasOf(PatternRewriter& rewriter, mlir::Location loc,
                      ArrayRef<View> conditions, RankedTensorType type) {
    SmallVector<int64_t> sizes(4, 1);
    for (const View& condition : conditions)
      for (int64_t dim : condition.largeDims())
        sizes[dim] = type.getDimSize(dim);
    Value all;
    for (const View& condition : conditions) {
      const Value one = buildBroadcast(rewriter, loc, condition, sizes);
      all = all ? arith::AndIOp::create(rewriter, loc, all, one) : one;
    }
    const RankedTensorType small = type.clone(sizes);
    return arith::SelectOp::create(
        rewriter, loc, all, buildSplat(rewriter, loc, small, 0),
        buildSplat(rewriter, loc, small,
                   -std::numeric_limits<double>::infinity()));
  }
};

// Takes keys and values before heads were repeated for groups of queries.
class KeysWithoutRepeats : public mlir::OpRewritePattern<nn::AttentionOp> {
 public:
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::AttentionOp op,
                                PatternRewriter& rewriter) const override {
    const Value k = withoutRepeats(rewriter, op.getK()),
                v = withoutRepeats(rewriter, op.getV());
    const int64_t heads = tensorType(k).getDimSize(1);
    if (heads != tensorType(v).getDimSize(1) ||
        heads == op.getK().getType().getDimSize(1))
      return mlir::failure();
    rewriter.modifyOpInPlace(op, [&] {
      op.getKMutable().assign(k);
      op.getVMutable().assign(v);
    });
    return mlir::success();
  }
};

// Takes the bias before it was repeated for queries, heads or batch elements.
class BiasWithoutRepeats : public mlir::OpRewritePattern<nn::AttentionOp> {
 public:
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::AttentionOp op,
                                PatternRewriter& rewriter) const override {
    const Value bias = op.getBias();
    if (!bias || !bias.getDefiningOp<nn::BroadcastOp>()) return mlir::failure();
    const ArrayRef<int64_t> shape = tensorType(bias).getShape();
    const View view = peel(viewOf(bias));
    SmallVector<int64_t> sizes(shape.size(), 1);
    for (int64_t dim : view.largeDims()) sizes[dim] = shape[dim];
    // Kernels load vectors along the keys.
    sizes.back() = shape.back();
    if (llvm::equal(sizes, shape)) return mlir::failure();
    const Value small = buildBroadcast(rewriter, op.getLoc(), view, sizes);
    rewriter.modifyOpInPlace(op, [&] { op.getBiasMutable().assign(small); });
    return mlir::success();
  }
};

}  // namespace

void populateRaiseAttention(mlir::RewritePatternSet& patterns,
                            mlir::Pass::Statistic& attentions) {
  mlir::MLIRContext* context = patterns.getContext();
  patterns.add<AttentionFromProduct>(context, attentions);
  patterns.add<MaskFromBias, MasksFromConditions, KeysWithoutRepeats,
               BiasWithoutRepeats>(context);
  // Transposes of the keys, which raising has cancelled, hide their repeats.
  nn::TransposeOp::getCanonicalizationPatterns(patterns, context);
  nn::ReshapeOp::getCanonicalizationPatterns(patterns, context);
}

}  // namespace partita::simplify
