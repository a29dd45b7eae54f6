// Kernels that are one nn.top_k.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_TOP_K_H_
#define PARTITA_COMPILER_KERNELS_EMIT_TOP_K_H_

#include "compiler/kernels/emit_nest.h"
#include "dialects/nn/dialect.h"

namespace partita::kernels {

// The top_k whose results alone are the results of `kernel`; null if there is
// none.
nn::TopKOp findTopK(mlir::func::FuncOp kernel);

// Of a kernel that findTopK likes. The range is the rows.
int64_t topKRange(nn::TopKOp op);
mlir::LogicalResult emitTopK(Emitter& emitter, nn::TopKOp op,
                             llvm::ArrayRef<Output> outputs, mlir::Value begin,
                             mlir::Value end);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_TOP_K_H_
