// Builds an optimizer from the pass's options.
#ifndef PARTITA_COMPILER_AUTODIFF_CHOOSE_OPTIMIZER_H_
#define PARTITA_COMPILER_AUTODIFF_CHOOSE_OPTIMIZER_H_

#include "compiler/autodiff/optimizer.h"
#include "compiler/autodiff/passes.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::autodiff {

// Fails with a diagnostic if the name is unknown or the options do not fit
// together.
mlir::FailureOr<Optimizer> chooseOptimizer(
    mlir::ModuleOp module, const AppendOptimizerPassOptions& options);

}  // namespace partita::autodiff

#endif  // PARTITA_COMPILER_AUTODIFF_CHOOSE_OPTIMIZER_H_
