// How often the functions of a module run.
#ifndef PARTITA_COMPILER_PARTITION_RUN_COUNTS_H_
#define PARTITA_COMPILER_PARTITION_RUN_COUNTS_H_

#include <cstdint>

#include "llvm/ADT/MapVector.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::partition {

// The functions that @main reaches, in the order of the first call, with how
// often each runs when @main runs once; empty without @main.
llvm::MapVector<mlir::func::FuncOp, int64_t> countRuns(mlir::ModuleOp module);

}  // namespace partita::partition

#endif  // PARTITA_COMPILER_PARTITION_RUN_COUNTS_H_
