// Emits kernels around nn.attention for one thread per item. Tiles of scores
// never leave the cache.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_ATTENTION_H_
#define PARTITA_COMPILER_KERNELS_EMIT_ATTENTION_H_

#include "compiler/kernels/emit_nest.h"
#include "dialects/nn/dialect.h"

namespace partita::kernels {

// Returns the only attention in `kernel` if all results follow from it by
// transposes, reshapes and elementwise operations; else null.
nn::AttentionOp findAttention(mlir::func::FuncOp kernel);

// Items of the range: batch x heads, each in several parts if these are few.
// `op` comes from findAttention.
int64_t attentionRange(Emitter& emitter, nn::AttentionOp op);
// Stores the outputs that follow from the attention's cached element at
// `index`.
mlir::LogicalResult storeOutputs(Emitter& emitter, nn::AttentionOp op,
                                 llvm::ArrayRef<Output> outputs,
                                 llvm::ArrayRef<Index> index);
mlir::LogicalResult emitAttention(Emitter& emitter, nn::AttentionOp op,
                                  llvm::ArrayRef<Output> outputs,
                                  mlir::Value begin, mlir::Value end);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_ATTENTION_H_
