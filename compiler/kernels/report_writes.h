// Makes generated kernels report their writes to the emulation of a block
// (team_fibers.h).
#ifndef PARTITA_COMPILER_KERNELS_REPORT_WRITES_H_
#define PARTITA_COMPILER_KERNELS_REPORT_WRITES_H_

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LLVM.h"

namespace partita::kernels {

// Inserts a call of partita_wrote behind each store into scratch, the last
// argument of a function, and into other arguments. Buffers have one dimension.
// Emits an error for a store of another kind. Changes nothing in modules whose
// kernels neither fence nor pass turns.
mlir::LogicalResult reportWrites(mlir::ModuleOp module);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_REPORT_WRITES_H_
