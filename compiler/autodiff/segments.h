// What stands between the calls of @main, as functions.
#ifndef PARTITA_COMPILER_AUTODIFF_SEGMENTS_H_
#define PARTITA_COMPILER_AUTODIFF_SEGMENTS_H_

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"

namespace partita::autodiff {

// Makes a private function, called once, of each longest run of operations of
// `main` that has no call in it and is of one stage (kStageAttr), which the
// call is then of; constants stay outside, or are copied where they are used.
void outlineSegments(mlir::func::FuncOp main, mlir::SymbolTable& symbols);

}  // namespace partita::autodiff

#endif  // PARTITA_COMPILER_AUTODIFF_SEGMENTS_H_
