// Estimates of the run time of generated code.
#ifndef PARTITA_COMPILER_KERNELS_ESTIMATE_WORK_H_
#define PARTITA_COMPILER_KERNELS_ESTIMATE_WORK_H_

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::kernels {

// Attribute of a loop whose bounds are known only at run time: its estimated
// number of iterations.
inline constexpr char kTripsAttr[] = "kernel.trips";

// Cycles of one core for one item of the range; at least 1.
double cyclesOfPiece(mlir::func::FuncOp body);

// The smallest part of [0, range) that is about 20 microseconds of work, and at
// least 1. An item takes `cycles`.
int64_t chooseGrain(double cycles, int64_t range);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_ESTIMATE_WORK_H_
