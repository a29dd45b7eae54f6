// Channels-last convolutions, and transposes that sink until they cancel; see
// passes.td.
#include "compiler/kernels/image_norms.h"
#include "compiler/kernels/layouts_of_calls.h"
#include "compiler/kernels/passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace partita::kernels {

#define GEN_PASS_DEF_CHOOSELAYOUTSPASS
#include "compiler/kernels/passes.h.inc"

namespace {

using llvm::ArrayRef;
using llvm::SmallVector;
using mlir::failure;
using mlir::LogicalResult;
using mlir::PatternRewriter;
using mlir::RankedTensorType;
using mlir::success;
using mlir::Value;
using nn::TransposeOp;

using Perm = SmallVector<int64_t>;

SmallVector<int64_t> permuted(ArrayRef<int64_t> values,
                              ArrayRef<int64_t> perm) {
  SmallVector<int64_t> result;
  for (int64_t p : perm) result.push_back(values[p]);
  return result;
}

Perm inverse(ArrayRef<int64_t> perm) {
  Perm result(perm.size());
  for (auto [i, p] : llvm::enumerate(perm)) result[p] = i;
  return result;
}

RankedTensorType typeOf(Value value) {
  return llvm::cast<RankedTensorType>(value.getType());
}

RankedTensorType permutedType(RankedTensorType type, ArrayRef<int64_t> perm) {
  return type.clone(permuted(type.getShape(), perm));
}

// The transpose that makes `value`, or null.
TransposeOp transposeOf(Value value) {
  return value.getDefiningOp<TransposeOp>();
}

// From channels first to channels last.
Perm toLast(int64_t rank) {
  Perm perm = {0};
  for (int64_t dim = 2; dim < rank; ++dim) perm.push_back(dim);
  perm.push_back(1);
  return perm;
}

// Puts a convolution, or a gradient of one, between transposes of its operands
// and result, except the weight.
template <typename Op>
class MakeChannelsLast : public mlir::OpRewritePattern<Op> {
  using mlir::OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter& rewriter) const override {
    if (op.getChannelsLast()) return failure();
    constexpr bool kMakesWeight = std::is_same_v<Op, nn::ConvWeightGradOp>;
    const Perm to_last = toLast(op.getType().getRank());
    const auto transposed = [&](Value x) -> Value {
      return TransposeOp::create(rewriter, op.getLoc(), x, to_last);
    };
    const Value first = transposed(op.getOperand(0));
    const Value second =
        kMakesWeight ? transposed(op.getOperand(1)) : op.getOperand(1);
    const RankedTensorType type =
        kMakesWeight ? op.getType() : permutedType(op.getType(), to_last);
    auto result =
        Op::create(rewriter, op.getLoc(), type, first, second, op.getStrides(),
                   op.getDilations(), op.getLow(), op.getHigh(), op.getGroups(),
                   /*channels_last=*/true);
    if (kMakesWeight) {
      rewriter.replaceOp(op, result);
    } else {
      rewriter.replaceOpWithNewOp<TransposeOp>(op, result, inverse(to_last));
    }
    return success();
  }
};

}  // namespace

// True if `value` without the transpose `perm` costs little: it is a transpose
// by perm, a broadcast or a splat.
bool canUntranspose(Value value, ArrayRef<int64_t> perm) {
  if (auto transpose = transposeOf(value)) return transpose.getPerm() == perm;
  mlir::DenseElementsAttr constant;
  if (mlir::matchPattern(value, mlir::m_Constant(&constant)))
    return constant.isSplat();
  auto broadcast = value.getDefiningOp<nn::BroadcastOp>();
  if (!broadcast) return false;
  // The input is transposed only if its dimensions change their order; then it
  // must be small.
  return llvm::is_sorted(permuted(perm, broadcast.getDims())) ||
         typeOf(broadcast.getInput()).getNumElements() * 4 <=
             typeOf(value).getNumElements();
}

namespace {

// The value whose transpose by `perm` is `value`. Requires canUntranspose.
Value untransposed(Value value, ArrayRef<int64_t> perm,
                   PatternRewriter& rewriter) {
  if (auto transpose = transposeOf(value)) return transpose.getInput();
  mlir::Location loc = value.getLoc();
  RankedTensorType source_type = permutedType(typeOf(value), inverse(perm));
  mlir::DenseElementsAttr constant;
  if (mlir::matchPattern(value, mlir::m_Constant(&constant)))
    return mlir::arith::ConstantOp::create(rewriter, loc,
                                           constant.resizeSplat(source_type));
  auto broadcast = value.getDefiningOp<nn::BroadcastOp>();
  SmallVector<std::pair<int64_t, int64_t>>
      dims;  // (dimension of the new result, dimension of the input)
  for (auto [i, d] : llvm::enumerate(broadcast.getDims()))
    dims.push_back({perm[d], static_cast<int64_t>(i)});
  llvm::sort(dims);
  SmallVector<int64_t> new_dims, order;
  for (auto [dim, from] : dims) new_dims.push_back(dim), order.push_back(from);
  Value input = broadcast.getInput();
  if (!llvm::is_sorted(order))
    input = TransposeOp::create(rewriter, loc, input, order);
  return nn::BroadcastOp::create(rewriter, loc, source_type, input, new_dims);
}

// f(transpose(a), b...) = transpose(f(a, untransposed(b)...)) for elementwise
// f.
class SinkBelowElementwise : public mlir::RewritePattern {
 public:
  explicit SinkBelowElementwise(mlir::MLIRContext* context)
      : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}
  LogicalResult matchAndRewrite(mlir::Operation* op,
                                PatternRewriter& rewriter) const override {
    if (!mlir::OpTrait::hasElementwiseMappableTraits(op) ||
        op->getNumResults() != 1)
      return failure();
    if (!llvm::isa<RankedTensorType>(op->getResult(0).getType()))
      return failure();
    TransposeOp lead;
    for (Value operand : op->getOperands())
      if (!lead) lead = transposeOf(operand);
    if (!lead) return failure();
    for (Value operand : op->getOperands())
      if (!llvm::isa<RankedTensorType>(operand.getType()) ||
          !canUntranspose(operand, lead.getPerm()))
        return failure();
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(untransposed(operand, lead.getPerm(), rewriter));
    mlir::Operation* moved = rewriter.clone(*op);
    moved->setOperands(operands);
    RankedTensorType type =
        permutedType(typeOf(op->getResult(0)), inverse(lead.getPerm()));
    moved->getResult(0).setType(type);
    rewriter.replaceOpWithNewOp<TransposeOp>(op, moved->getResult(0),
                                             lead.getPerm());
    return success();
  }
};

class SinkBelowReduce : public mlir::OpRewritePattern<nn::ReduceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::ReduceOp reduce,
                                PatternRewriter& rewriter) const override {
    TransposeOp transpose = transposeOf(reduce.getInput());
    if (!transpose) return failure();
    SmallVector<int64_t> dims = permuted(transpose.getPerm(), reduce.getDims());
    llvm::sort(dims);
    auto moved =
        nn::ReduceOp::create(rewriter, reduce.getLoc(), reduce.getKind(),
                             transpose.getInput(), dims);
    // Remaining dimensions of the source, in the order of the old result.
    SmallVector<int64_t> kept_sources, perm;
    for (int64_t dim = 0; dim < typeOf(reduce.getInput()).getRank(); ++dim)
      if (!llvm::is_contained(reduce.getDims(), dim))
        kept_sources.push_back(transpose.getPerm()[dim]);
    for (int64_t source : kept_sources)
      perm.push_back(llvm::count_if(
          kept_sources, [&](int64_t other) { return other < source; }));
    rewriter.replaceOpWithNewOp<TransposeOp>(reduce, moved, perm);
    return success();
  }
};

class SinkBelowReduceWindow
    : public mlir::OpRewritePattern<nn::ReduceWindowOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::ReduceWindowOp op,
                                PatternRewriter& rewriter) const override {
    TransposeOp transpose = transposeOf(op.getInput());
    if (!transpose) return failure();
    Perm back = inverse(transpose.getPerm());
    auto moved = nn::ReduceWindowOp::create(
        rewriter, op.getLoc(), permutedType(typeOf(op.getResult()), back),
        op.getKind(), transpose.getInput(), permuted(op.getWindow(), back),
        permuted(op.getStrides(), back), permuted(op.getDilations(), back),
        permuted(op.getLow(), back), permuted(op.getHigh(), back));
    rewriter.replaceOpWithNewOp<TransposeOp>(op, moved, transpose.getPerm());
    return success();
  }
};

class SinkBelowPad : public mlir::OpRewritePattern<nn::PadOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::PadOp op,
                                PatternRewriter& rewriter) const override {
    TransposeOp transpose = transposeOf(op.getInput());
    if (!transpose) return failure();
    Perm back = inverse(transpose.getPerm());
    auto moved = nn::PadOp::create(
        rewriter, op.getLoc(), permutedType(typeOf(op.getResult()), back),
        transpose.getInput(), op.getValue(), permuted(op.getLow(), back),
        permuted(op.getHigh(), back), op.getMode());
    rewriter.replaceOpWithNewOp<TransposeOp>(op, moved, transpose.getPerm());
    return success();
  }
};

class SinkBelowSlice : public mlir::OpRewritePattern<nn::SliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::SliceOp op,
                                PatternRewriter& rewriter) const override {
    TransposeOp transpose = transposeOf(op.getInput());
    if (!transpose) return failure();
    Perm back = inverse(transpose.getPerm());
    auto moved = nn::SliceOp::create(
        rewriter, op.getLoc(), permutedType(typeOf(op.getResult()), back),
        transpose.getInput(), permuted(op.getStarts(), back),
        permuted(op.getStrides(), back));
    rewriter.replaceOpWithNewOp<TransposeOp>(op, moved, transpose.getPerm());
    return success();
  }
};

class SinkBelowConcat : public mlir::OpRewritePattern<nn::ConcatOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::ConcatOp op,
                                PatternRewriter& rewriter) const override {
    TransposeOp lead = transposeOf(op.getInputs().front());
    if (!lead) return failure();
    for (Value input : op.getInputs())
      if (!canUntranspose(input, lead.getPerm())) return failure();
    SmallVector<Value> inputs;
    for (Value input : op.getInputs())
      inputs.push_back(untransposed(input, lead.getPerm(), rewriter));
    auto moved = nn::ConcatOp::create(
        rewriter, op.getLoc(),
        permutedType(typeOf(op.getResult()), inverse(lead.getPerm())), inputs,
        lead.getPerm()[op.getAxis()]);
    rewriter.replaceOpWithNewOp<TransposeOp>(op, moved, lead.getPerm());
    return success();
  }
};

class SinkBelowSoftmax : public mlir::OpRewritePattern<nn::SoftmaxOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::SoftmaxOp op,
                                PatternRewriter& rewriter) const override {
    TransposeOp transpose = transposeOf(op.getInput());
    // Only if the axis becomes the last one: vector code walks rows.
    if (!transpose || transpose.getPerm()[op.getAxis()] !=
                          typeOf(op.getInput()).getRank() - 1)
      return failure();
    auto moved = nn::SoftmaxOp::create(
        rewriter, op.getLoc(), transpose.getInput().getType(),
        transpose.getInput(), transpose.getPerm()[op.getAxis()], op.getLog());
    rewriter.replaceOpWithNewOp<TransposeOp>(op, moved, transpose.getPerm());
    return success();
  }
};

class SinkBelowBatchNorm : public mlir::OpRewritePattern<nn::BatchNormOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::BatchNormOp op,
                                PatternRewriter& rewriter) const override {
    TransposeOp transpose = transposeOf(op.getInput());
    if (!transpose) return failure();
    Perm perm(transpose.getPerm());
    auto moved = llvm::cast<nn::BatchNormOp>(rewriter.clone(*op));
    moved.getInputMutable().assign(transpose.getInput());
    moved.setFeature(perm[op.getFeature()]);
    moved.getResult().setType(typeOf(transpose.getInput()));
    SmallVector<Value> results = {
        TransposeOp::create(rewriter, op.getLoc(), moved.getResult(), perm)};
    llvm::append_range(results, moved.getNewStatistics());
    rewriter.replaceOp(op, results);
    return success();
  }
};

class SinkBelowCollective : public mlir::OpRewritePattern<exec::CollectiveOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(exec::CollectiveOp op,
                                PatternRewriter& rewriter) const override {
    TransposeOp transpose = transposeOf(op.getInput());
    // Rows stay rows.
    if (!transpose || op.getTo()) return failure();
    const Perm perm(transpose.getPerm());
    const int64_t dim = op.getDim(), other_dim = op.getOtherDim();
    auto moved = llvm::cast<exec::CollectiveOp>(rewriter.clone(*op));
    moved.getInputMutable().assign(transpose.getInput());
    if (dim >= 0) moved.setDim(perm[dim]);
    if (other_dim >= 0) moved.setOtherDim(perm[other_dim]);
    moved.getResult().setType(
        permutedType(typeOf(op.getResult()), inverse(perm)));
    rewriter.replaceOpWithNewOp<TransposeOp>(op, moved, perm);
    return success();
  }
};

// Splits a reshape into groups of dimensions with equal products: (source dims,
// result dims) per group, in order. Dimensions of size 1 join a neighbouring
// group.
struct ReshapeGroup {
  SmallVector<int64_t> source, result;
};
SmallVector<ReshapeGroup> reshapeGroups(ArrayRef<int64_t> source,
                                        ArrayRef<int64_t> result) {
  SmallVector<ReshapeGroup> groups;
  size_t i = 0, j = 0;
  while (i < source.size() && j < result.size()) {
    ReshapeGroup group;
    int64_t left = source[i], right = result[j];
    group.source.push_back(i++);
    group.result.push_back(j++);
    while (left != right) {
      if (left < right) {
        left *= source[i];
        group.source.push_back(i++);
      } else {
        right *= result[j];
        group.result.push_back(j++);
      }
    }
    groups.push_back(std::move(group));
  }
  if (groups.empty()) return groups;
  for (; i < source.size(); ++i) groups.back().source.push_back(i);
  for (; j < result.size(); ++j) groups.back().result.push_back(j);
  return groups;
}

// reshape(transpose(x)) = transpose(reshape(x)) if the dimensions of each
// merged or split group are adjacent in x.
class SinkBelowReshape : public mlir::OpRewritePattern<nn::ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::ReshapeOp op,
                                PatternRewriter& rewriter) const override {
    TransposeOp transpose = transposeOf(op.getInput());
    if (!transpose || typeOf(op.getResult()).getNumElements() == 0)
      return failure();
    SmallVector<ReshapeGroup> groups = reshapeGroups(
        typeOf(op.getInput()).getShape(), typeOf(op.getResult()).getShape());
    if (groups.empty()) return failure();
    SmallVector<std::pair<int64_t, const ReshapeGroup*>>
        order;  // (where the group starts in x, group)
    for (const ReshapeGroup& group : groups) {
      const int64_t start = transpose.getPerm()[group.source.front()];
      for (auto [k, dim] : llvm::enumerate(group.source))
        if (transpose.getPerm()[dim] != start + static_cast<int64_t>(k))
          return failure();
      order.push_back({start, &group});
    }
    llvm::sort(order, llvm::less_first());
    SmallVector<int64_t> shape, result_dims;
    for (auto [start, group] : order)
      for (int64_t dim : group->result)
        shape.push_back(typeOf(op.getResult()).getDimSize(dim)),
            result_dims.push_back(dim);
    auto moved = nn::ReshapeOp::create(rewriter, op.getLoc(),
                                       typeOf(op.getResult()).clone(shape),
                                       transpose.getInput());
    rewriter.replaceOpWithNewOp<TransposeOp>(op, moved, inverse(result_dims));
    return success();
  }
};

// dot_general reads its operands in any order, so its dimension numbers absorb
// the transpose. Free dimensions must stay in order, or the result's order
// would change; other transposes are left to the library call's strides.
class AbsorbIntoDotGeneral : public mlir::OpRewritePattern<nn::DotGeneralOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::DotGeneralOp op,
                                PatternRewriter& rewriter) const override {
    for (bool left : {true, false}) {
      Value operand = left ? op.getLhs() : op.getRhs();
      TransposeOp transpose = transposeOf(operand);
      if (!transpose) continue;
      ArrayRef<int64_t> batch = left ? op.getLhsBatch() : op.getRhsBatch();
      ArrayRef<int64_t> contract =
          left ? op.getLhsContract() : op.getRhsContract();
      SmallVector<int64_t> free;
      for (int64_t dim = 0; dim < typeOf(operand).getRank(); ++dim)
        if (!llvm::is_contained(batch, dim) &&
            !llvm::is_contained(contract, dim))
          free.push_back(transpose.getPerm()[dim]);
      if (!llvm::is_sorted(free)) continue;
      SmallVector<int64_t> new_batch = permuted(transpose.getPerm(), batch),
                           new_contract =
                               permuted(transpose.getPerm(), contract);
      rewriter.modifyOpInPlace(op, [&] {
        if (left) {
          op.getLhsMutable().assign(transpose.getInput());
          op.setLhsBatch(new_batch), op.setLhsContract(new_contract);
        } else {
          op.getRhsMutable().assign(transpose.getInput());
          op.setRhsBatch(new_batch), op.setRhsContract(new_contract);
        }
      });
      return success();
    }
    return failure();
  }
};

class ChooseLayouts : public impl::ChooseLayoutsPassBase<ChooseLayouts> {
 public:
  void runOnOperation() override {
    bool has_convolution = false;
    getOperation().walk([&](mlir::Operation* op) {
      has_convolution |=
          llvm::isa<nn::ConvOp, nn::ConvInputGradOp, nn::ConvWeightGradOp>(op);
    });
    if (!has_convolution) return;
    mlir::RewritePatternSet patterns(&getContext());
    patterns.add<
        MakeChannelsLast<nn::ConvOp>, MakeChannelsLast<nn::ConvInputGradOp>,
        MakeChannelsLast<nn::ConvWeightGradOp>, SinkBelowElementwise,
        SinkBelowReduce, SinkBelowReduceWindow, SinkBelowPad, SinkBelowSlice,
        SinkBelowConcat, SinkBelowSoftmax, SinkBelowBatchNorm,
        SinkBelowCollective, SinkBelowReshape, AbsorbIntoDotGeneral>(
        &getContext());
    addSinkBelowImageNorm(patterns);
    nn::TransposeOp::getCanonicalizationPatterns(patterns, &getContext());
    nn::ReshapeOp::getCanonicalizationPatterns(patterns, &getContext());
    nn::BroadcastOp::getCanonicalizationPatterns(patterns, &getContext());
    const mlir::FrozenRewritePatternSet frozen(std::move(patterns));
    // Each round moves a border by at least one layer, and no border moves
    // twice. Patterns work on one function at a time, so functions that did not
    // change in a round are finished.
    llvm::SetVector<mlir::func::FuncOp> changed;
    for (auto function : getOperation().getOps<mlir::func::FuncOp>())
      changed.insert(function);
    MovedBorders moved;
    for (; !changed.empty();
         changed = moveTransposesToCallers(getOperation(), moved))
      for (mlir::func::FuncOp function : changed)
        if (mlir::failed(mlir::applyPatternsGreedily(function, frozen))) {
          getOperation().emitError(
              "expected layouts to settle, found that transposes keep moving; "
              "please report this model");
          return signalPassFailure();
        }
  }
};

}  // namespace
}  // namespace partita::kernels
