// Registers gradients, one group per file.
#ifndef PARTITA_COMPILER_AUTODIFF_GRADIENTS_H_
#define PARTITA_COMPILER_AUTODIFF_GRADIENTS_H_

#include "mlir/IR/MLIRContext.h"

namespace partita::autodiff {

void registerAnnotationGradients(mlir::MLIRContext* context);
void registerElementwiseGradients(mlir::MLIRContext* context);
void registerMovementGradients(mlir::MLIRContext* context);
void registerContractionGradients(mlir::MLIRContext* context);
void registerCompositeGradients(mlir::MLIRContext* context);
void registerExpertGradients(mlir::MLIRContext* context);

}  // namespace partita::autodiff

#endif  // PARTITA_COMPILER_AUTODIFF_GRADIENTS_H_
