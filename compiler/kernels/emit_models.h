// Rules of KernelOpInterface by family; registerKernelModels attaches them all.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_MODELS_H_
#define PARTITA_COMPILER_KERNELS_EMIT_MODELS_H_

#include "mlir/IR/MLIRContext.h"

namespace partita::kernels {

void attachElementwiseModels(mlir::MLIRContext& context);  // arith, math
void attachMovementModels(
    mlir::MLIRContext& context);  // broadcast, reshape, transpose, slice, pad,
                                  // concat, gather, iota
void attachReductionModels(
    mlir::MLIRContext& context);  // reduce, reduce_window, dot_general, conv
void attachWholeModels(
    mlir::MLIRContext&
        context);  // operations emitted whole, and those that decompose

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_MODELS_H_
