// Which gradients of attention have a kernel; the others are decomposed before
// products go to libraries.
#ifndef PARTITA_COMPILER_KERNELS_TILED_ATTENTION_H_
#define PARTITA_COMPILER_KERNELS_TILED_ATTENTION_H_

#include "dialects/nn/dialect.h"

namespace partita::kernels {

// Without softcap; if the bias gets a gradient, it is one matrix for each head,
// and key-value heads are not shared.
inline bool isTiled(nn::AttentionGradOp op) {
  const auto shape = [](mlir::Value value) {
    return mlir::cast<mlir::RankedTensorType>(value.getType()).getShape();
  };
  for (mlir::Value operand : op->getOperands())
    if (llvm::is_contained(shape(operand), 0)) return false;
  if (op.getSoftcap().convertToDouble() > 0) return false;
  if (!op.getBiasGrad()) return true;
  const auto q = shape(op.getQ()), k = shape(op.getK());
  return k[1] == q[1] &&
         shape(op.getBias()) == llvm::ArrayRef<int64_t>{1, q[1], q[2], k[2]};
}

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_TILED_ATTENTION_H_
