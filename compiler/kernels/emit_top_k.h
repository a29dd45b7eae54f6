// Kernels that are one nn.top_k.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_TOP_K_H_
#define PARTITA_COMPILER_KERNELS_EMIT_TOP_K_H_

#include "compiler/kernels/emit_nest.h"
#include "dialects/nn/dialect.h"

namespace partita::kernels {

// Returns the top_k whose results are all results of `kernel`; null if there is
// none.
nn::TopKOp findTopK(mlir::func::FuncOp kernel);

// One item per row. `op` comes from findTopK.
int64_t topKRange(nn::TopKOp op);
mlir::LogicalResult emitTopK(Emitter& emitter, nn::TopKOp op,
                             llvm::ArrayRef<Output> outputs, mlir::Value begin,
                             mlir::Value end);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_TOP_K_H_
