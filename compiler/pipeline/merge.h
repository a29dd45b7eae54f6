// Merges the programs of all ranks of a pipeline into one module.
#ifndef PARTITA_COMPILER_PIPELINE_MERGE_H_
#define PARTITA_COMPILER_PIPELINE_MERGE_H_

#include "llvm/ADT/ArrayRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace partita::pipeline {

// Returns a module whose entries (dialects/exec/entries.h) are the functions
// main and init of `programs`, in order. Consumes `programs`. Equal private
// functions (kernels and layers) are merged.
mlir::OwningOpRef<mlir::ModuleOp> mergePrograms(
    llvm::MutableArrayRef<mlir::OwningOpRef<mlir::ModuleOp>> programs);

}  // namespace partita::pipeline

#endif  // PARTITA_COMPILER_PIPELINE_MERGE_H_
