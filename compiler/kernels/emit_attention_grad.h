// Emits kernels that are one nn.attention_grad. No L x S matrix leaves the
// cache, except the gradient of a bias.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_ATTENTION_GRAD_H_
#define PARTITA_COMPILER_KERNELS_EMIT_ATTENTION_GRAD_H_

#include "compiler/kernels/emit_nest.h"
#include "dialects/nn/dialect.h"

namespace partita::kernels {

// Returns the gradient that computes all results of `kernel`, if it is tiled;
// else null. Several of its results may be parts of one of the kernel's.
nn::AttentionGradOp findAttentionGrad(mlir::func::FuncOp kernel);

// The gradients that these results of a kernel consist of, and their places in
// the results' buffers. Results that are something else are listed as they are.
llvm::SmallVector<Output> gradientsOf(mlir::ValueRange results,
                                      llvm::ArrayRef<Buffer> buffers);
// Strides of the gradient's dimensions in its buffer.
llvm::SmallVector<int64_t> placeStrides(const Output& gradient);

// Emits the gradient that findAttentionGrad returns. Returns the range:
// key-value heads of each batch element, or of the whole batch if the batch
// elements share the gradient of a bias.
mlir::FailureOr<int64_t> emitAttentionGrad(Emitter& emitter,
                                           nn::AttentionGradOp op,
                                           llvm::ArrayRef<Output> outputs,
                                           mlir::Value begin, mlir::Value end);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_ATTENTION_GRAD_H_
