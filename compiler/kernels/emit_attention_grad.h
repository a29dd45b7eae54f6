// Emits kernels that are one nn.attention_grad. No L x S matrix leaves the
// cache, except the gradient of a bias.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_ATTENTION_GRAD_H_
#define PARTITA_COMPILER_KERNELS_EMIT_ATTENTION_GRAD_H_

#include "compiler/kernels/emit_nest.h"
#include "dialects/nn/dialect.h"

namespace partita::kernels {

// Returns the gradient that computes all results of `kernel`, if it is tiled;
// else null.
nn::AttentionGradOp findAttentionGrad(mlir::func::FuncOp kernel);

// Emits the gradient that findAttentionGrad returns. Returns the range:
// key-value heads of each batch element, or of the whole batch if the batch
// elements share the gradient of a bias.
mlir::FailureOr<int64_t> emitAttentionGrad(Emitter& emitter,
                                           nn::AttentionGradOp op,
                                           llvm::ArrayRef<Output> outputs,
                                           mlir::Value begin, mlir::Value end);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_ATTENTION_GRAD_H_
