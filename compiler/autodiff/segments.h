// Outlines the operations between the calls of @main.
#ifndef PARTITA_COMPILER_AUTODIFF_SEGMENTS_H_
#define PARTITA_COMPILER_AUTODIFF_SEGMENTS_H_

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"

namespace partita::autodiff {

// Makes a private function of each maximal run of operations of `main` without
// calls and of a single stage (kStageAttr), and calls it once. The call belongs
// to that stage. Constants stay outside and are copied into the functions that
// use them.
void outlineSegments(mlir::func::FuncOp main, mlir::SymbolTable& symbols);

}  // namespace partita::autodiff

#endif  // PARTITA_COMPILER_AUTODIFF_SEGMENTS_H_
