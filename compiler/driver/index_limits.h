// Upper bounds for index inputs (token ids, labels).
#ifndef PARTITA_COMPILER_DRIVER_INDEX_LIMITS_H_
#define PARTITA_COMPILER_DRIVER_INDEX_LIMITS_H_

#include "mlir/IR/BuiltinOps.h"

namespace partita::driver {

// Marks each input of @main whose elements are used, unchanged, as indices of
// rows of a table (`nn.gather`) or of classes of a loss. The mark
// (emit::kLimitAttr) is the number of rows or classes; the smallest, if there
// are several uses.
void markIndexLimits(mlir::ModuleOp module);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_INDEX_LIMITS_H_
