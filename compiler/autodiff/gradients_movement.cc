// Gradients of operations that move elements.
#include "compiler/autodiff/gradient.h"
#include "compiler/autodiff/gradients.h"

namespace partita::autodiff {

void registerMovementGradients(mlir::MLIRContext* context) { (void)context; }

}  // namespace partita::autodiff
