// One module for all ranks of a pipeline.
#ifndef PARTITA_COMPILER_PIPELINE_MERGE_H_
#define PARTITA_COMPILER_PIPELINE_MERGE_H_

#include "llvm/ADT/ArrayRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace partita::pipeline {

// A module whose entries (dialects/exec/entries.h) are, in order, the functions
// main and init of these modules, which are consumed. Private functions that do
// the same, kernels and layers, become one.
mlir::OwningOpRef<mlir::ModuleOp> mergePrograms(
    llvm::MutableArrayRef<mlir::OwningOpRef<mlir::ModuleOp>> programs);

}  // namespace partita::pipeline

#endif  // PARTITA_COMPILER_PIPELINE_MERGE_H_
