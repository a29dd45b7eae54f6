// Kernels that are one nn.attention_grad: no L x S matrix leaves the cache,
// unless it is the gradient of a bias.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_ATTENTION_GRAD_H_
#define PARTITA_COMPILER_KERNELS_EMIT_ATTENTION_GRAD_H_

#include "compiler/kernels/emit_nest.h"
#include "dialects/nn/dialect.h"

namespace partita::kernels {

// The gradient that gives all results of `kernel`, if it is tiled; else null.
nn::AttentionGradOp findAttentionGrad(mlir::func::FuncOp kernel);

// Of a kernel that findAttentionGrad likes. Returns the range: key-value heads
// of each batch element, or of all where they share the gradient of a bias.
mlir::FailureOr<int64_t> emitAttentionGrad(Emitter& emitter,
                                           nn::AttentionGradOp op,
                                           llvm::ArrayRef<Output> outputs,
                                           mlir::Value begin, mlir::Value end);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_ATTENTION_GRAD_H_
