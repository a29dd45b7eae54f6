// One pattern per kind of operation. If an operand is a flattening and the
// operation works on the unflattened value too, it takes that value, and its
// result is flattened instead.
#include "compiler/sharding/sink_reshapes.h"

#include "compiler/sharding/dim_groups.h"
#include "dialects/dist/dialect.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace partita::sharding {
namespace {

using llvm::ArrayRef;
using llvm::SmallVector;
using mlir::LogicalResult;
using mlir::Operation;
using mlir::PatternRewriter;
using mlir::RankedTensorType;
using mlir::Value;

RankedTensorType typeOf(Value value) {
  return mlir::cast<RankedTensorType>(value.getType());
}

// A flat shape, and the sizes that each of its dimensions expands to.
struct Expansion {
  SmallVector<SmallVector<int64_t>> sizes;

  bool expands(int64_t dim) const { return sizes[dim].size() > 1; }
  bool expandsAny() const {
    return llvm::any_of(sizes, [](auto& list) { return list.size() > 1; });
  }
  void keepFlat(int64_t dim) {
    sizes[dim] = {productOf(sizes[dim], 0, sizes[dim].size())};
  }
  template <typename Predicate>
  void keepFlatIf(Predicate predicate) {
    for (int64_t dim = 0; dim < static_cast<int64_t>(sizes.size()); ++dim)
      if (predicate(dim)) keepFlat(dim);
  }
  // Returns the first of the dimensions that `dim` becomes.
  int64_t position(int64_t dim) const {
    int64_t result = 0;
    for (int64_t i = 0; i < dim; ++i) result += sizes[i].size();
    return result;
  }
  // Returns all dimensions that `dims` become, in order.
  SmallVector<int64_t> positions(ArrayRef<int64_t> dims) const {
    SmallVector<int64_t> result;
    for (int64_t dim : dims)
      for (size_t i = 0; i < sizes[dim].size(); ++i)
        result.push_back(position(dim) + i);
    return result;
  }
  SmallVector<int64_t> shape() const {
    SmallVector<int64_t> result;
    for (const auto& list : sizes) result.append(list);
    return result;
  }
  Value apply(PatternRewriter& rewriter, Value flat) const {
    RankedTensorType type = typeOf(flat).clone(shape());
    if (auto reshape = flat.getDefiningOp<nn::ReshapeOp>())
      flat = reshape.getInput();
    if (flat.getType() == type) return flat;
    return nn::ReshapeOp::create(rewriter, flat.getLoc(), type, flat);
  }
};

// Returns the expansion that undoes the reshape that defines `value`. Returns
// nullopt if there is no reshape or if it also splits dimensions. Sizes of 1 do
// not count.
std::optional<Expansion> flatteningOf(Value value) {
  auto reshape = value.getDefiningOp<nn::ReshapeOp>();
  if (!reshape) return std::nullopt;
  ArrayRef<int64_t> from = typeOf(reshape.getInput()).getShape(),
                    to = typeOf(value).getShape();
  auto groups = groupDims(from, to);
  if (!groups) return std::nullopt;
  Expansion expansion;
  for (const DimGroup& group : *groups) {
    if (group.to_end - group.to_begin > 1) return std::nullopt;
    if (group.to_begin == group.to_end) continue;
    SmallVector<int64_t> sizes;
    for (int64_t size :
         from.slice(group.from_begin, group.from_end - group.from_begin))
      if (size != 1) sizes.push_back(size);
    if (sizes.empty()) sizes.push_back(1);
    expansion.sizes.push_back(std::move(sizes));
  }
  if (!expansion.expandsAny()) return std::nullopt;
  return expansion;
}

// Returns the expansion of a broadcast's input that corresponds to `result`.
Expansion ofBroadcastInput(nn::BroadcastOp op, const Expansion& result) {
  Expansion input;
  for (auto [size, dim] :
       llvm::zip_equal(typeOf(op.getInput()).getShape(), op.getDims())) {
    if (size == 1)
      input.sizes.push_back({1});
    else
      input.sizes.push_back(result.sizes[dim]);
  }
  return input;
}

// Returns the dimensions of the expanded result that the dimensions of the
// expanded input map to.
SmallVector<int64_t> broadcastDims(nn::BroadcastOp op, const Expansion& input,
                                   const Expansion& result) {
  SmallVector<int64_t> dims;
  for (auto [index, dim] : llvm::enumerate(op.getDims()))
    for (size_t i = 0; i < input.sizes[index].size(); ++i)
      dims.push_back(result.position(dim) + i);
  return dims;
}

// Restricts `expansion` to the dimensions that `value` can expand at no cost.
void restrictTo(Value value, Expansion& expansion) {
  mlir::SplatElementsAttr splat;
  if (mlir::matchPattern(value, mlir::m_Constant(&splat))) return;
  if (auto broadcast = value.getDefiningOp<nn::BroadcastOp>()) return;
  const std::optional<Expansion> own = flatteningOf(value);
  expansion.keepFlatIf([&](int64_t dim) {
    return !own || own->sizes[dim] != expansion.sizes[dim];
  });
}

// Returns an operand of the flat shape, expanded.
Value expandOperand(PatternRewriter& rewriter, Value value,
                    const Expansion& expansion) {
  mlir::SplatElementsAttr splat;
  if (mlir::matchPattern(value, mlir::m_Constant(&splat)))
    return mlir::arith::ConstantOp::create(
        rewriter, value.getLoc(),
        splat.resizeSplat(typeOf(value).clone(expansion.shape())));
  if (auto broadcast = value.getDefiningOp<nn::BroadcastOp>()) {
    const Expansion input = ofBroadcastInput(broadcast, expansion);
    return nn::BroadcastOp::create(rewriter, broadcast.getLoc(),
                                   typeOf(value).clone(expansion.shape()),
                                   input.apply(rewriter, broadcast.getInput()),
                                   broadcastDims(broadcast, input, expansion));
  }
  return expansion.apply(rewriter, value);
}

// Replaces `op` by a copy with other operands and result shape, and flattens
// the copy's result.
void replaceExpanded(PatternRewriter& rewriter, Operation* op,
                     mlir::ValueRange operands, ArrayRef<int64_t> shape,
                     llvm::function_ref<void(Operation*)> adjust = {}) {
  Operation* copy = rewriter.clone(*op);
  rewriter.modifyOpInPlace(copy, [&] {
    copy->setOperands(operands);
    copy->removeAttr(dist::kShardingsAttr);  // the dimensions differ
    copy->getResult(0).setType(typeOf(op->getResult(0)).clone(shape));
    if (adjust) adjust(copy);
  });
  rewriter.replaceOpWithNewOp<nn::ReshapeOp>(op, op->getResult(0).getType(),
                                             copy->getResult(0));
}

struct SinkBelowElementwise : mlir::RewritePattern {
  SinkBelowElementwise(mlir::MLIRContext* context)
      : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult matchAndRewrite(Operation* op,
                                PatternRewriter& rewriter) const override {
    if (!op->hasTrait<mlir::OpTrait::Elementwise>() || op->getNumResults() != 1)
      return mlir::failure();
    auto type = mlir::dyn_cast<RankedTensorType>(op->getResult(0).getType());
    if (!type) return mlir::failure();
    auto isTensor = [](Value value) {
      return mlir::isa<RankedTensorType>(value.getType());
    };
    std::optional<Expansion> expansion;
    for (Value operand : op->getOperands())
      if (isTensor(operand) && !expansion) expansion = flatteningOf(operand);
    if (!expansion) return mlir::failure();
    for (Value operand : op->getOperands())
      if (isTensor(operand)) restrictTo(operand, *expansion);
    if (!expansion->expandsAny()) return mlir::failure();
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(isTensor(operand)
                             ? expandOperand(rewriter, operand, *expansion)
                             : operand);
    replaceExpanded(rewriter, op, operands, expansion->shape());
    return mlir::success();
  }
};

struct SinkBelowDot : mlir::OpRewritePattern<nn::DotGeneralOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::DotGeneralOp op,
                                PatternRewriter& rewriter) const override {
    for (const bool left : {true, false}) {
      std::optional<Expansion> expansion =
          flatteningOf(left ? op.getLhs() : op.getRhs());
      if (!expansion) continue;
      ArrayRef<int64_t> batch = left ? op.getLhsBatch() : op.getRhsBatch(),
                        contract =
                            left ? op.getLhsContract() : op.getRhsContract();
      expansion->keepFlatIf([&](int64_t dim) {
        return llvm::is_contained(batch, dim) ||
               llvm::is_contained(contract, dim);
      });
      if (!expansion->expandsAny()) continue;
      Value own = expansion->apply(rewriter, left ? op.getLhs() : op.getRhs());
      auto own_batch = expansion->positions(batch),
           own_contract = expansion->positions(contract);
      auto product =
          left ? nn::DotGeneralOp::create(
                     rewriter, op.getLoc(), own, op.getRhs(), own_batch,
                     op.getRhsBatch(), own_contract, op.getRhsContract())
               : nn::DotGeneralOp::create(rewriter, op.getLoc(), op.getLhs(),
                                          own, op.getLhsBatch(), own_batch,
                                          op.getLhsContract(), own_contract);
      rewriter.replaceOpWithNewOp<nn::ReshapeOp>(op, op.getType(), product);
      return mlir::success();
    }
    return mlir::failure();
  }
};

struct SinkBelowTranspose : mlir::OpRewritePattern<nn::TransposeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::TransposeOp op,
                                PatternRewriter& rewriter) const override {
    const std::optional<Expansion> expansion = flatteningOf(op.getInput());
    if (!expansion) return mlir::failure();
    auto transpose = nn::TransposeOp::create(
        rewriter, op.getLoc(), expansion->apply(rewriter, op.getInput()),
        expansion->positions(op.getPerm()));
    rewriter.replaceOpWithNewOp<nn::ReshapeOp>(op, op.getType(), transpose);
    return mlir::success();
  }
};

struct SinkBelowReduce : mlir::OpRewritePattern<nn::ReduceOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::ReduceOp op,
                                PatternRewriter& rewriter) const override {
    const std::optional<Expansion> expansion = flatteningOf(op.getInput());
    if (!expansion) return mlir::failure();
    auto reduce =
        nn::ReduceOp::create(rewriter, op.getLoc(), op.getKind(),
                             expansion->apply(rewriter, op.getInput()),
                             expansion->positions(op.getDims()));
    rewriter.replaceOpWithNewOp<nn::ReshapeOp>(op, op.getType(), reduce);
    return mlir::success();
  }
};

// Norms and softmax need the dimensions from `axis` on, or `axis`, whole.
template <typename Op>
struct SinkBelowNorm : mlir::OpRewritePattern<Op> {
  using mlir::OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter& rewriter) const override {
    std::optional<Expansion> expansion = flatteningOf(op.getInput());
    if (!expansion) return mlir::failure();
    const int64_t axis = op.getAxis();
    expansion->keepFlatIf([&](int64_t dim) {
      return std::is_same_v<Op, nn::SoftmaxOp> ? dim == axis : dim >= axis;
    });
    if (!expansion->expandsAny()) return mlir::failure();
    SmallVector<Value> operands(op->getOperands());
    operands[0] = expansion->apply(rewriter, operands[0]);
    replaceExpanded(rewriter, op, operands, expansion->shape(),
                    [&](Operation* copy) {
                      mlir::cast<Op>(copy).setAxis(expansion->position(axis));
                    });
    return mlir::success();
  }
};

// An embedding with flattened indices.
struct SinkBelowGather : mlir::OpRewritePattern<nn::GatherOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::GatherOp op,
                                PatternRewriter& rewriter) const override {
    if (op.getBatchDims() != 0) return mlir::failure();
    std::optional<Expansion> expansion = flatteningOf(op.getIndices());
    if (!expansion) return mlir::failure();
    expansion->keepFlat(expansion->sizes.size() - 1);
    if (!expansion->expandsAny()) return mlir::failure();
    Value indices = expansion->apply(rewriter, op.getIndices());
    auto type = nn::inferGatherType(typeOf(op.getInput()), typeOf(indices),
                                    op.getAxes(), 0);
    Value gathered = nn::GatherOp::create(rewriter, op.getLoc(), type,
                                          op.getInput(), indices, op.getAxes());
    rewriter.replaceOpWithNewOp<nn::ReshapeOp>(op, op.getType(), gathered);
    return mlir::success();
  }
};

// A router's choices.
struct SinkBelowTopK : mlir::OpRewritePattern<nn::TopKOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::TopKOp op,
                                PatternRewriter& rewriter) const override {
    std::optional<Expansion> expansion = flatteningOf(op.getInput());
    if (!expansion) return mlir::failure();
    expansion->keepFlat(expansion->sizes.size() - 1);
    if (!expansion->expandsAny()) return mlir::failure();
    SmallVector<int64_t> shape = expansion->shape();
    shape.back() = op.getValues().getType().getShape().back();
    auto choices = nn::TopKOp::create(
        rewriter, op.getLoc(), op.getValues().getType().clone(shape),
        op.getIndices().getType().clone(shape),
        expansion->apply(rewriter, op.getInput()), op.getLargest());
    SmallVector<Value> flat;
    for (auto [old, made] : llvm::zip(op.getResults(), choices.getResults()))
      flat.push_back(
          nn::ReshapeOp::create(rewriter, op.getLoc(), old.getType(), made));
    rewriter.replaceOp(op, flat);
    return mlir::success();
  }
};

struct SinkBelowCrossEntropy : mlir::OpRewritePattern<nn::CrossEntropyOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::CrossEntropyOp op,
                                PatternRewriter& rewriter) const override {
    std::optional<Expansion> logits = flatteningOf(op.getLogits()),
                             targets = flatteningOf(op.getTargets());
    if (!logits || !targets) return mlir::failure();
    logits->keepFlat(logits->sizes.size() - 1);
    for (size_t dim = 0; dim < targets->sizes.size(); ++dim)
      if (logits->sizes[dim] != targets->sizes[dim]) return mlir::failure();
    SmallVector<Value> operands = {logits->apply(rewriter, op.getLogits()),
                                   targets->apply(rewriter, op.getTargets())};
    replaceExpanded(rewriter, op, operands, targets->shape());
    return mlir::success();
  }
};

class CountReplaced : public mlir::RewriterBase::Listener {
 public:
  int64_t count() const { return count_; }
  void notifyOperationReplaced(Operation* op, mlir::ValueRange) override {
    count_ += !mlir::isa<nn::ReshapeOp>(op);
  }

 private:
  int64_t count_ = 0;
};

}  // namespace

mlir::FailureOr<int64_t> sinkReshapes(mlir::func::FuncOp function) {
  mlir::RewritePatternSet patterns(function.getContext());
  patterns.add<SinkBelowElementwise, SinkBelowDot, SinkBelowTranspose,
               SinkBelowReduce, SinkBelowNorm<nn::LayerNormOp>,
               SinkBelowNorm<nn::RmsNormOp>, SinkBelowNorm<nn::SoftmaxOp>,
               SinkBelowGather, SinkBelowTopK, SinkBelowCrossEntropy>(
      function.getContext());
  nn::ReshapeOp::getCanonicalizationPatterns(patterns, function.getContext());
  CountReplaced listener;
  mlir::GreedyRewriteConfig config;
  config.setListener(&listener);
  if (failed(
          mlir::applyPatternsGreedily(function, std::move(patterns), config)))
    return mlir::failure();
  return listener.count();
}

}  // namespace partita::sharding
