// Writes all masks but causality and windows without a shift as a bias; these
// stay, because kernels skip keys by them.
#include "compiler/kernels/masks_as_bias.h"

#include <limits>

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

template <typename Op>
bool hasMasks(Op op) {
  return (op.getWindow() && !hasKernelWindow(op)) || op.getShift() ||
         op.getQSegments() || op.getBlocks();
}

bool isGradientOfBiasWanted(nn::AttentionOp) { return false; }
bool isGradientOfBiasWanted(nn::AttentionGradOp op) {
  return op.getBiasGrad() != nullptr;
}

template <typename Op>
void writeMasks(Op op) {
  if (!hasMasks(op)) return;
  const RankedTensorType q = op.getQ().getType();
  const bool differs =
      op.getBlocks() &&
      cast<RankedTensorType>(op.getBlocks()->getType()).getDimSize(0) > 1;
  SmallVector<int64_t> shape = {op.getQSegments() ? q.getDimSize(0) : 1,
                                differs ? q.getDimSize(1) : 1, q.getDimSize(2),
                                op.getK().getType().getDimSize(2)};
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
  if (!hasKernelWindow(op)) op.removeWindowAttr();
  if (op.getShift()) op.removeCausalOffsetAttr();
  op.removeSinksAttr();
  op.removeBlocksAttr();
  op.removeBlockSizeAttr();
  op.getFirstHeadMutable().clear();
  op.getShiftMutable().clear();
  op.getQSegmentsMutable().clear();
  op.getKSegmentsMutable().clear();
}

template <typename Op>
bool isPlain(Op op) {
  return !hasMasks(op);
}

}  // namespace

void writeMasksAsBias(func::FuncOp kernel) {
  kernel.walk([](Operation* op) {
    if (auto attention = dyn_cast<nn::AttentionOp>(op)) writeMasks(attention);
    if (auto gradient = dyn_cast<nn::AttentionGradOp>(op)) writeMasks(gradient);
  });
}

bool isPlainAttention(Operation* op) {
  if (auto attention = dyn_cast<nn::AttentionOp>(op)) return isPlain(attention);
  return isPlain(cast<nn::AttentionGradOp>(op));
}

}  // namespace partita::kernels
