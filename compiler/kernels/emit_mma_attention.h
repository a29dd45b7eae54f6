// Kernels around nn.attention on tensor cores.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_MMA_ATTENTION_H_
#define PARTITA_COMPILER_KERNELS_EMIT_MMA_ATTENTION_H_

#include "compiler/kernels/emit_nest.h"
#include "dialects/nn/dialect.h"

namespace partita::kernels {

// Whether the tiles of emitMmaAttention have the sizes and types of this one,
// and nothing in `kernel` is reduced beside it: bf16, f16 or f32, head sizes
// that are multiples of 16 up to 128.
bool fitsMma(mlir::func::FuncOp kernel, nn::AttentionOp op);
// Whether warpgroups can multiply the tiles of what fitsMma likes: bf16 or f16,
// head sizes of 64 or 128, no bias.
bool fitsWarpgroups(nn::AttentionOp op);
// The same of an attention's gradient, with these q and v.
bool fitsMma(mlir::func::FuncOp kernel, mlir::Operation* op, mlir::Value q,
             mlir::Value v);

// Of a kernel that findAttention (emit_attention.h) and fitsMma like, for teams
// of kBlock. `warpgroups` multiply, or warps. Returns the range: blocks of
// queries of each batch and head.
mlir::FailureOr<int64_t> emitMmaAttention(Emitter& emitter, nn::AttentionOp op,
                                          llvm::ArrayRef<Output> outputs,
                                          mlir::Value begin, mlir::Value end,
                                          bool warpgroups);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_MMA_ATTENTION_H_
