// Keeps several reads of memory in flight.
#ifndef PARTITA_COMPILER_KERNELS_UNROLL_READS_H_
#define PARTITA_COMPILER_KERNELS_UNROLL_READS_H_

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::kernels {

// A GPU's thread waits for a read only where it needs the value. So in short
// innermost loops that read memory and have a known number of iterations, four
// iterations become one, whose reads can be in flight together. Sums keep their
// order.
void unrollReads(mlir::func::FuncOp body);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_UNROLL_READS_H_
