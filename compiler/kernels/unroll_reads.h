// Several reads of memory under way at a time.
#ifndef PARTITA_COMPILER_KERNELS_UNROLL_READS_H_
#define PARTITA_COMPILER_KERNELS_UNROLL_READS_H_

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::kernels {

// A GPU's thread waits for what it reads only where it needs it: in short
// innermost loops that read memory and are run a known number of times, four
// turns become one, whose reads can be under way together. Sums keep their
// order.
void unrollReads(mlir::func::FuncOp body);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_UNROLL_READS_H_
