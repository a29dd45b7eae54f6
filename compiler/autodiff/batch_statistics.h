// Returns the running statistics of batch norms from a training step.
#ifndef PARTITA_COMPILER_AUTODIFF_BATCH_STATISTICS_H_
#define PARTITA_COMPILER_AUTODIFF_BATCH_STATISTICS_H_

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Support/LLVM.h"

namespace partita::autodiff {

// Adds a result to `main` for each statistic of a batch norm in training mode,
// in `main` or in a function that it calls. nn.updates on the result names the
// argument that holds the statistic. Functions in between return it too. Fails
// with a diagnostic if a statistic is not a stored tensor.
mlir::LogicalResult returnStatistics(mlir::func::FuncOp main);

}  // namespace partita::autodiff

#endif  // PARTITA_COMPILER_AUTODIFF_BATCH_STATISTICS_H_
