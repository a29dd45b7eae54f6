// Running statistics of batch norms as values that a training step returns.
#ifndef PARTITA_COMPILER_AUTODIFF_BATCH_STATISTICS_H_
#define PARTITA_COMPILER_AUTODIFF_BATCH_STATISTICS_H_

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Support/LLVM.h"

namespace partita::autodiff {

// For each statistic of a batch norm in training mode, in `main` or in a
// function that it calls, adds a result to `main` with nn.updates, the name of
// the argument that holds it. Functions in between return it too. Fails, after
// a diagnostic, where a statistic is no stored tensor.
mlir::LogicalResult returnStatistics(mlir::func::FuncOp main);

}  // namespace partita::autodiff

#endif  // PARTITA_COMPILER_AUTODIFF_BATCH_STATISTICS_H_
