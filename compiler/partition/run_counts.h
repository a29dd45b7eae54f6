// Counts the runs of each function of a module.
#ifndef PARTITA_COMPILER_PARTITION_RUN_COUNTS_H_
#define PARTITA_COMPILER_PARTITION_RUN_COUNTS_H_

#include <cstdint>

#include "llvm/ADT/MapVector.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::partition {

// Returns the functions reachable from @main, in the order of their first call,
// with the number of runs of each per run of @main. Empty without @main.
llvm::MapVector<mlir::func::FuncOp, int64_t> countRuns(mlir::ModuleOp module);

}  // namespace partita::partition

#endif  // PARTITA_COMPILER_PARTITION_RUN_COUNTS_H_
