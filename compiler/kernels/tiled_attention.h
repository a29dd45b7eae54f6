// Selects the gradients of attention that have a kernel. The others are
// decomposed before products go to libraries.
#ifndef PARTITA_COMPILER_KERNELS_TILED_ATTENTION_H_
#define PARTITA_COMPILER_KERNELS_TILED_ATTENTION_H_

#include "dialects/nn/dialect.h"

namespace partita::kernels {

// True if no operand is empty and there is no softcap. If the bias gets a
// gradient, it must also have one matrix per head for the whole batch; if heads
// share keys and values, a CPU's thread adds the matrices of all heads of a
// group in its scratch, so they are limited.
inline bool isTiled(nn::AttentionGradOp op) {
  const auto shape = [](mlir::Value value) {
    return mlir::cast<mlir::RankedTensorType>(value.getType()).getShape();
  };
  for (mlir::Value operand : op->getOperands())
    if (llvm::is_contained(shape(operand), 0)) return false;
  if (op.getSoftcap().convertToDouble() > 0) return false;
  if (!op.getBiasGrad()) return true;
  const auto q = shape(op.getQ()), k = shape(op.getK());
  constexpr int64_t kMostSumsOfSharedKeys = int64_t{1} << 20;
  const int64_t shared = q[1] / k[1];
  return shape(op.getBias()) == llvm::ArrayRef<int64_t>{1, q[1], q[2], k[2]} &&
         (shared == 1 || shared * q[2] * k[2] <= kMostSumsOfSharedKeys);
}

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_TILED_ATTENTION_H_
