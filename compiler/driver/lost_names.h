// Reports weights whose names an exporter lost.
#ifndef PARTITA_COMPILER_DRIVER_LOST_NAMES_H_
#define PARTITA_COMPILER_DRIVER_LOST_NAMES_H_

#include "mlir/IR/BuiltinOps.h"

namespace partita::driver {

// Warns if at least half of the model's floating-point weights, by elements,
// have no names of their own, and says how to export them. In training, a
// remark counts fewer ones: they are constants, which training does not change.
void reportLostNames(mlir::ModuleOp module, bool training);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_LOST_NAMES_H_
