// The gradient of attention on tensor cores.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_MMA_ATTENTION_GRAD_H_
#define PARTITA_COMPILER_KERNELS_EMIT_MMA_ATTENTION_GRAD_H_

#include "compiler/core/attention_work.h"
#include "compiler/kernels/emit_nest.h"
#include "dialects/nn/dialect.h"

namespace partita::kernels {

// Whether there are tiles for this one, as for the attention itself
// (emit_mma_attention.h); of f32 for head sizes up to 64. `kernel` is one that
// findAttentionGrad likes.
bool fitsMma(mlir::func::FuncOp kernel, nn::AttentionGradOp op);

// Kernels that run one after the other, each for some of the results; so each
// result is summed up by one block of threads, in one order.
enum class GradPart {
  rows,  // for blocks of queries: the queries' gradient, and what the others
         // need to know of each query
  keys,  // for blocks of keys: the gradients of keys and values
  bias,  // for both: the gradient of the bias
};
// Those that are needed for these outputs.
llvm::SmallVector<GradPart> gradPartsOf(nn::AttentionGradOp op,
                                        llvm::ArrayRef<Output> outputs);
// What a part computes of each pair of a query and a key, and touches.
struct GradWork {
  core::AttentionProducts products;
  llvm::SmallVector<mlir::Value> values;  // of the operands and results of `op`
};
GradWork workOf(nn::AttentionGradOp op, GradPart part,
                llvm::ArrayRef<Output> outputs);
// Floats of device memory in which `rows` tells the others.
int64_t sharedFloats(nn::AttentionGradOp op);

// Of a kernel that fitsMma likes, for teams of kBlock, with `memory` of so many
// floats. Returns the range.
mlir::FailureOr<int64_t> emitMmaAttentionGrad(
    Emitter& emitter, nn::AttentionGradOp op, GradPart part,
    llvm::ArrayRef<Output> outputs, mlir::Value memory, mlir::Value begin,
    mlir::Value end);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_MMA_ATTENTION_GRAD_H_
