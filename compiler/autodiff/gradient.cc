// Registers all gradients.
#include "compiler/autodiff/gradient.h"

#include "compiler/autodiff/gradient.cc.inc"
#include "compiler/autodiff/gradients.h"
#include "dialects/dist/dialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace partita::autodiff {

void registerGradients(mlir::DialectRegistry& registry) {
  registry.addExtension(+[](mlir::MLIRContext* context, nn::NNDialect*,
                            mlir::arith::ArithDialect*,
                            mlir::math::MathDialect*) {
    registerElementwiseGradients(context);
    registerMovementGradients(context);
    registerContractionGradients(context);
    registerCompositeGradients(context);
    registerExpertGradients(context);
  });
  registry.addExtension(+[](mlir::MLIRContext* context, dist::DistDialect*) {
    registerAnnotationGradients(context);
  });
}

}  // namespace partita::autodiff
