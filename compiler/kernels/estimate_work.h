// How long generated code runs, roughly.
#ifndef PARTITA_COMPILER_KERNELS_ESTIMATE_WORK_H_
#define PARTITA_COMPILER_KERNELS_ESTIMATE_WORK_H_

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::kernels {

// On a loop whose bounds are known at run time only: how often it runs.
inline constexpr char kTripsAttr[] = "kernel.trips";

// Cycles of one core for one piece of the range; at least 1.
double cyclesOfPiece(mlir::func::FuncOp body);

// Of pieces of so many cycles: the smallest part of [0, range) that is about 20
// microseconds of work, and at least 1.
int64_t chooseGrain(double cycles, int64_t range);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_ESTIMATE_WORK_H_
