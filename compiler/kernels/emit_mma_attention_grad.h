// The gradient of attention on tensor cores.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_MMA_ATTENTION_GRAD_H_
#define PARTITA_COMPILER_KERNELS_EMIT_MMA_ATTENTION_GRAD_H_

#include "compiler/core/attention_work.h"
#include "compiler/kernels/emit_nest.h"
#include "dialects/nn/dialect.h"

namespace partita::kernels {

// True if tensor cores can compute `op`: the conditions of the attention itself
// (emit_mma_attention.h), and head sizes up to 64 for f32. Requires that
// findAttentionGrad returns `op`.
bool fitsMma(mlir::func::FuncOp kernel, nn::AttentionGradOp op);

// Kernels of one gradient. They run one after the other. Each result is summed
// in one order.
enum class GradPart {
  statistics,  // for blocks of queries: statistics for the other parts
  keys,        // for blocks of keys: the gradients of keys and values, and sums
               // for q's gradient
  queries,     // for blocks of queries: q's gradient, from these sums
  bias,        // for blocks of both: the gradient of the bias
};
// The parts that these outputs need.
llvm::SmallVector<GradPart> gradPartsOf(nn::AttentionGradOp op,
                                        llvm::ArrayRef<Output> outputs);
// Products of a part per pair of a query and a key, the operands and results of
// the gradient that it accesses, and the floats of memory that it accesses.
struct GradWork {
  core::AttentionProducts products;
  llvm::SmallVector<mlir::Value> values;
  int64_t shared_floats = 0;
};
GradWork workOf(nn::AttentionGradOp op, GradPart part,
                llvm::ArrayRef<Output> outputs, bool warpgroups);
// Floats of device memory that parts pass on: statistics, and sums of q's
// gradient, once.
int64_t sharedFloats(nn::AttentionGradOp op, llvm::ArrayRef<Output> outputs,
                     bool warpgroups);

// Emits one part for teams of kBlock. Requires fitsMma. `memory` has
// sharedFloats floats. With `warpgroups`, which requires fitsWarpgroups,
// warpgroups compute the part for keys; all parts must agree. Returns the
// range.
mlir::FailureOr<int64_t> emitMmaAttentionGrad(
    Emitter& emitter, nn::AttentionGradOp op, GradPart part,
    llvm::ArrayRef<Output> outputs, mlir::Value memory, mlir::Value begin,
    mlir::Value end, bool warpgroups);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_MMA_ATTENTION_GRAD_H_
