// Writes all masks but causality and windows without a shift as a bias; these
// stay, because kernels skip keys by them. Tables of blocks stay, too. They are
// also a bias, unless blocks are multiples of all tiles: then no visited tile
// has hidden pairs.
#include "compiler/kernels/masks_as_bias.h"

#include <limits>

#include "compiler/kernels/emit_mma_attention.h"
#include "compiler/kernels/emit_mma_attention_grad.h"
#include "compiler/kernels/emit_tile_lists.h"
#include "dialects/nn/attention_mask.h"
#include "dialects/nn/dialect.h"

namespace partita::kernels {
namespace {

using namespace mlir;

// True if the kernel skips keys by the window itself. Sinks are outside of a
// window.
template <typename Op>
bool hasKernelWindow(Op op) {
  return op.getWindow() && !op.getShift() && !op.getSinks();
}

bool isGradientOfBiasWanted(nn::AttentionOp) { return false; }
bool isGradientOfBiasWanted(nn::AttentionGradOp op) {
  return op.getBiasGrad() != nullptr;
}

// True if the kernel skips tiles by the table of blocks. A shift also moves the
// table's rows; other masks only hide more pairs.
template <typename Op>
bool hasKernelBlocks(Op op) {
  return op.getBlocks() && !op.getShift() &&
         TileLists::fits(*op.getBlocks(), op.getQ().getType().getDimSize(2),
                         op.getK().getType().getDimSize(2));
}

// True if skipped tiles have all pairs that blocks hide.
template <typename Op>
bool hasBlocksOfTiles(Op op) {
  return hasKernelBlocks(op) && *op.getBlockSize() % kMostTileRows == 0 &&
         !isGradientOfBiasWanted(op);
}

// True if masks must be written as a bias.
template <typename Op>
bool hasMasks(Op op) {
  return (op.getWindow() && !hasKernelWindow(op)) || op.getShift() ||
         op.getQSegments() || (op.getBlocks() && !hasBlocksOfTiles(op));
}

// The shape of the masks as a bias.
template <typename Op>
SmallVector<int64_t> maskShape(Op op) {
  const RankedTensorType q = op.getQ().getType();
  const bool differs =
      op.getBlocks() &&
      cast<RankedTensorType>(op.getBlocks()->getType()).getDimSize(0) > 1;
  return {op.getQSegments() ? q.getDimSize(0) : 1,
          differs ? q.getDimSize(1) : 1, q.getDimSize(2),
          op.getK().getType().getDimSize(2)};
}

// True if the bias is large enough to hold the masks.
template <typename Op>
bool hasBiasOfMasks(Op op) {
  if (!op.getBias()) return false;
  const auto bias = cast<RankedTensorType>(op.getBias().getType()).getShape();
  for (auto [size, needed] : llvm::zip_equal(bias, maskShape(op)))
    if (size < needed) return false;
  return true;
}

template <typename Op>
void writeMasks(func::FuncOp kernel, Op op) {
  const bool fits = fitsMma(kernel, op);
  if (!hasMasks(op) && (fits || !op.getBlocks())) return;
  const RankedTensorType q = op.getQ().getType();
  const SmallVector<int64_t> shape = maskShape(op);
  SmallVector<int64_t> sum = shape;
  const Value bias = op.getBias();
  if (bias)
    for (auto [size, other] : llvm::zip_equal(
             sum, cast<RankedTensorType>(bias.getType()).getShape()))
      size = std::max(size, other);
  if (isGradientOfBiasWanted(op) &&
      cast<RankedTensorType>(bias.getType()).getShape() != ArrayRef(sum))
    return;
  OpBuilder builder(op);
  nn::MathBuilder math(builder, op.getLoc());
  const auto type = RankedTensorType::get(shape, q.getElementType());
  const auto whole = RankedTensorType::get(sum, q.getElementType());
  Value mask = math.select(
      nn::buildVisibleKeys(math, op, type), math.constant(type, 0),
      math.constant(type, -std::numeric_limits<double>::infinity()));
  if (bias)
    mask = math.add(math.broadcast(mask, whole, {0, 1, 2, 3}),
                    math.broadcast(bias, whole, {0, 1, 2, 3}));
  op.getBiasMutable().assign(mask);
  const bool keeps_blocks = fits && hasKernelBlocks(op);
  if (!hasKernelWindow(op)) op.removeWindowAttr();
  if (op.getShift()) op.removeCausalOffsetAttr();
  op.removeSinksAttr();
  if (!keeps_blocks) {
    op.removeBlocksAttr();
    op.removeBlockSizeAttr();
    op.getFirstHeadMutable().clear();
  }
  op.getShiftMutable().clear();
  op.getQSegmentsMutable().clear();
  op.getKSegmentsMutable().clear();
}

template <typename Op>
bool isPlain(Op op) {
  if (!op.getBlocks() || hasBlocksOfTiles(op)) return !hasMasks(op);
  // Blocks that stay are in the bias, too.
  return !op.getShift() && !op.getQSegments() && hasBiasOfMasks(op);
}

}  // namespace

void writeMasksAsBias(func::FuncOp kernel) {
  kernel.walk([&](Operation* op) {
    if (auto attention = dyn_cast<nn::AttentionOp>(op))
      writeMasks(kernel, attention);
    if (auto gradient = dyn_cast<nn::AttentionGradOp>(op))
      writeMasks(kernel, gradient);
  });
}

bool isPlainAttention(Operation* op) {
  if (auto attention = dyn_cast<nn::AttentionOp>(op)) return isPlain(attention);
  return isPlain(cast<nn::AttentionGradOp>(op));
}

}  // namespace partita::kernels
