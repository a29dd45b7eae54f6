// Folders and canonicalisation of data movement: removes operations that move
// nothing, merges two moves into one, and moves small constants and splats at
// compile time.
#include "dialects/nn/dialect.h"
#include "dialects/nn/fold.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::nn {
namespace {

using mlir::ArrayRef;
using mlir::Attribute;
using mlir::LogicalResult;
using mlir::OpFoldResult;
using mlir::PatternRewriter;
using mlir::RankedTensorType;
using mlir::SmallVector;
using mlir::SplatElementsAttr;

// Folds the constant operand of an operation that only moves elements. A splat
// of any size stays a splat; other constants are moved if they are small.
Attribute foldMove(mlir::Operation* op, RankedTensorType type,
                   ArrayRef<Attribute> operands) {
  if (llvm::is_contained(operands, nullptr)) return {};
  if (auto splat = mlir::dyn_cast<SplatElementsAttr>(operands.front())) {
    const bool one_value =
        llvm::all_equal(llvm::map_range(operands, [](Attribute operand) {
          auto splat = mlir::dyn_cast<SplatElementsAttr>(operand);
          return splat ? splat.getSplatValue<Attribute>() : Attribute();
        }));
    if (one_value) return splat.resizeSplat(type);
  }
  const auto folded = foldByReference(op, operands, kMaxFoldedElements);
  return mlir::succeeded(folded) ? Attribute(folded->front()) : Attribute();
}

bool isIdentity(ArrayRef<int64_t> perm) {
  return llvm::all_of(llvm::enumerate(perm), [](auto it) {
    return static_cast<int64_t>(it.index()) == it.value();
  });
}

// reshape(reshape(x)) -> reshape(x)
LogicalResult composeReshapes(ReshapeOp op, PatternRewriter& rewriter) {
  auto inner = op.getInput().getDefiningOp<ReshapeOp>();
  if (!inner) return mlir::failure();
  rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), inner.getInput());
  return mlir::success();
}

// transpose(transpose(x)) -> transpose(x)
LogicalResult composeTransposes(TransposeOp op, PatternRewriter& rewriter) {
  auto inner = op.getInput().getDefiningOp<TransposeOp>();
  if (!inner) return mlir::failure();
  SmallVector<int64_t> perm;
  for (int64_t dim : op.getPerm()) perm.push_back(inner.getPerm()[dim]);
  rewriter.replaceOpWithNewOp<TransposeOp>(op, op.getType(), inner.getInput(),
                                           perm);
  return mlir::success();
}

// True if the transpose exchanges the last two dimensions and moves no other.
bool exchangesLastTwo(TransposeOp op) {
  SmallVector<int64_t> perm(op.getPerm());
  if (perm.size() < 2) return false;
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return isIdentity(perm);
}

// transpose(reshape(transpose(x))) -> reshape(x), if both transposes exchange
// the rows and columns of matrices that the reshape only counts in another way.
// PyTorch's ONNX exporter writes the keys of attention so.
LogicalResult transposeThroughReshape(TransposeOp op,
                                      PatternRewriter& rewriter) {
  auto reshape = op.getInput().getDefiningOp<ReshapeOp>();
  if (!reshape) return mlir::failure();
  auto inner = reshape.getInput().getDefiningOp<TransposeOp>();
  if (!inner || !exchangesLastTwo(op) || !exchangesLastTwo(inner) ||
      inner.getType().getShape().take_back(2) !=
          reshape.getType().getShape().take_back(2))
    return mlir::failure();
  rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), inner.getInput());
  return mlir::success();
}

// A transpose that only changes the place of dimensions of size 1 is a reshape.
LogicalResult transposeToReshape(TransposeOp op, PatternRewriter& rewriter) {
  const RankedTensorType input = op.getInput().getType();
  SmallVector<int64_t> moved;
  for (int64_t dim : op.getPerm()) {
    if (input.getDimSize(dim) != 1) moved.push_back(dim);
  }
  if (!llvm::is_sorted(moved)) return mlir::failure();
  rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), op.getInput());
  return mlir::success();
}

// broadcast(broadcast(x)) -> broadcast(x)
LogicalResult composeBroadcasts(BroadcastOp op, PatternRewriter& rewriter) {
  auto inner = op.getInput().getDefiningOp<BroadcastOp>();
  if (!inner) return mlir::failure();
  SmallVector<int64_t> dims;
  for (int64_t dim : inner.getDims()) dims.push_back(op.getDims()[dim]);
  rewriter.replaceOpWithNewOp<BroadcastOp>(op, op.getType(), inner.getInput(),
                                           dims);
  return mlir::success();
}

// A broadcast that repeats nothing only inserts dimensions of size 1.
LogicalResult broadcastToReshape(BroadcastOp op, PatternRewriter& rewriter) {
  if (op.getInput().getType().getNumElements() != op.getType().getNumElements())
    return mlir::failure();
  rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), op.getInput());
  return mlir::success();
}

// broadcast(reshape(x)) -> broadcast(x) where the reshape only inserts
// dimensions of size 1.
LogicalResult broadcastThroughReshape(BroadcastOp op,
                                      PatternRewriter& rewriter) {
  auto inner = op.getInput().getDefiningOp<ReshapeOp>();
  if (!inner) return mlir::failure();
  const ArrayRef<int64_t> from = inner.getInput().getType().getShape(),
                          to = inner.getType().getShape();
  SmallVector<int64_t> dims;
  for (size_t i = 0; i < to.size(); ++i) {
    if (dims.size() < from.size() && from[dims.size()] == to[i]) {
      dims.push_back(op.getDims()[i]);
    } else if (to[i] != 1) {
      return mlir::failure();
    }
  }
  if (dims.size() != from.size()) return mlir::failure();
  rewriter.replaceOpWithNewOp<BroadcastOp>(op, op.getType(), inner.getInput(),
                                           dims);
  return mlir::success();
}

// slice(slice(x)) -> slice(x)
LogicalResult composeSlices(SliceOp op, PatternRewriter& rewriter) {
  auto inner = op.getInput().getDefiningOp<SliceOp>();
  if (!inner) return mlir::failure();
  SmallVector<int64_t> starts, strides;
  for (int64_t i = 0; i < op.getType().getRank(); ++i) {
    starts.push_back(inner.getStarts()[i] +
                     op.getStarts()[i] * inner.getStrides()[i]);
    strides.push_back(op.getStrides()[i] * inner.getStrides()[i]);
  }
  rewriter.replaceOpWithNewOp<SliceOp>(op, op.getType(), inner.getInput(),
                                       starts, strides);
  return mlir::success();
}

}  // namespace

OpFoldResult BroadcastOp::fold(FoldAdaptor adaptor) {
  if (getInput().getType() == getType()) return getInput();
  // Folds splats only: repeating other constants would store copies.
  auto splat = mlir::dyn_cast_if_present<SplatElementsAttr>(adaptor.getInput());
  return splat ? OpFoldResult(splat.resizeSplat(getType())) : OpFoldResult();
}

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  if (getInput().getType() == getType()) return getInput();
  return foldMove(*this, getType(), adaptor.getOperands());
}

OpFoldResult TransposeOp::fold(FoldAdaptor adaptor) {
  if (isIdentity(getPerm())) return getInput();
  return foldMove(*this, getType(), adaptor.getOperands());
}

OpFoldResult SliceOp::fold(FoldAdaptor adaptor) {
  const bool takes_all =
      llvm::all_of(getStrides(), [](int64_t stride) { return stride == 1; });
  if (takes_all && getInput().getType() == getType()) return getInput();
  return foldMove(*this, getType(), adaptor.getOperands());
}

OpFoldResult PadOp::fold(FoldAdaptor adaptor) {
  if (getInput().getType() == getType()) return getInput();
  return foldMove(*this, getType(), adaptor.getOperands());
}

OpFoldResult ConcatOp::fold(FoldAdaptor adaptor) {
  if (getInputs().size() == 1) return getInputs().front();
  const auto is_empty = [](mlir::Value input) {
    return mlir::cast<RankedTensorType>(input.getType()).getNumElements() == 0;
  };
  if (getType().getNumElements() > 0 && llvm::any_of(getInputs(), is_empty)) {
    const SmallVector<mlir::Value> kept =
        llvm::filter_to_vector(getInputs(), std::not_fn(is_empty));
    getInputsMutable().assign(kept);
    return getResult();
  }
  return foldMove(*this, getType(), adaptor.getOperands());
}

OpFoldResult ReduceOp::fold(FoldAdaptor adaptor) {
  if (getDims().empty()) return getInput();
  const auto folded =
      foldByReference(*this, adaptor.getOperands(), kMaxFoldedElements);
  return mlir::succeeded(folded) ? OpFoldResult(folded->front())
                                 : OpFoldResult();
}

void BroadcastOp::getCanonicalizationPatterns(mlir::RewritePatternSet& patterns,
                                              mlir::MLIRContext*) {
  patterns.add(composeBroadcasts);
  patterns.add(broadcastToReshape);
  patterns.add(broadcastThroughReshape);
}

void ReshapeOp::getCanonicalizationPatterns(mlir::RewritePatternSet& patterns,
                                            mlir::MLIRContext*) {
  patterns.add(composeReshapes);
}

void TransposeOp::getCanonicalizationPatterns(mlir::RewritePatternSet& patterns,
                                              mlir::MLIRContext*) {
  patterns.add(composeTransposes);
  patterns.add(transposeToReshape);
  patterns.add(transposeThroughReshape);
}

void SliceOp::getCanonicalizationPatterns(mlir::RewritePatternSet& patterns,
                                          mlir::MLIRContext*) {
  patterns.add(composeSlices);
}

}  // namespace partita::nn
