// Rules of KernelOpInterface by family; registerKernelModels attaches them all.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_MODELS_H_
#define PARTITA_COMPILER_KERNELS_EMIT_MODELS_H_

#include "mlir/IR/MLIRContext.h"

namespace partita::kernels {

// arith, math
void attachElementwiseModels(mlir::MLIRContext& context);
// Divisions, powers and conversions of arith and math.
void attachNumberModels(mlir::MLIRContext& context);
// broadcast, reshape, transpose, slice, pad, concat, gather, iota
void attachMovementModels(mlir::MLIRContext& context);
// reduce, reduce_window, dot_general, conv
void attachReductionModels(mlir::MLIRContext& context);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_MODELS_H_
