// Kernels around nn.attention: tiles of scores that never leave the cache.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_ATTENTION_H_
#define PARTITA_COMPILER_KERNELS_EMIT_ATTENTION_H_

#include "compiler/kernels/emit_nest.h"
#include "dialects/nn/dialect.h"

namespace partita::kernels {

// The attention that `kernel` is about: its only one, from which all results
// follow by transposes, reshapes and elementwise operations. Null if the kernel
// is not of that kind.
nn::AttentionOp findAttention(mlir::func::FuncOp kernel);

// Of a kernel that findAttention likes. The range is batch x heads, in parts if
// these are few.
int64_t attentionRange(Emitter& emitter, nn::AttentionOp op);
// Stores what follows from the attention's element at `index`, which is cached.
mlir::LogicalResult storeOutputs(Emitter& emitter, nn::AttentionOp op,
                                 llvm::ArrayRef<Output> outputs,
                                 llvm::ArrayRef<Index> index);
mlir::LogicalResult emitAttention(Emitter& emitter, nn::AttentionOp op,
                                  llvm::ArrayRef<Output> outputs,
                                  mlir::Value begin, mlir::Value end);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_ATTENTION_H_
