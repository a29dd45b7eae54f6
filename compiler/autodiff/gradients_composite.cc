// Gradients of composites.
#include "compiler/autodiff/gradient.h"
#include "compiler/autodiff/gradients.h"

namespace partita::autodiff {

void registerCompositeGradients(mlir::MLIRContext* context) { (void)context; }

}  // namespace partita::autodiff
