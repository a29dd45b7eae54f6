// Emits kernels around nn.attention on tensor cores.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_MMA_ATTENTION_H_
#define PARTITA_COMPILER_KERNELS_EMIT_MMA_ATTENTION_H_

#include "compiler/kernels/emit_nest.h"
#include "dialects/nn/dialect.h"

namespace partita::kernels {

// True if emitMmaAttention can compute `op`: bf16, f16 or f32, head sizes that
// are multiples of 16 up to 128, and no other reduction in `kernel`.
bool fitsMma(mlir::func::FuncOp kernel, nn::AttentionOp op);
// True if warpgroups can multiply the tiles of `op`: bf16 or f16, head sizes of
// 64 or 128, no bias. Requires fitsMma.
bool fitsWarpgroups(nn::AttentionOp op);
// The same for the gradient.
bool fitsWarpgroups(nn::AttentionGradOp op);
// The same as the first, for an attention's gradient with these q and v.
bool fitsMma(mlir::func::FuncOp kernel, mlir::Operation* op, mlir::Value q,
             mlir::Value v);

// Emits a kernel for teams of kBlock. Requires findAttention (emit_attention.h)
// and fitsMma. With `warpgroups`, warpgroups multiply; else warps. Returns the
// range: blocks of queries of each batch element and head.
mlir::FailureOr<int64_t> emitMmaAttention(Emitter& emitter, nn::AttentionOp op,
                                          llvm::ArrayRef<Output> outputs,
                                          mlir::Value begin, mlir::Value end,
                                          bool warpgroups);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_MMA_ATTENTION_H_
