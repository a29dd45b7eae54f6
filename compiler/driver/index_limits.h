// How large an input's numbers may be that rows are looked up by.
#ifndef PARTITA_COMPILER_DRIVER_INDEX_LIMITS_H_
#define PARTITA_COMPILER_DRIVER_INDEX_LIMITS_H_

#include "mlir/IR/BuiltinOps.h"

namespace partita::driver {

// Marks inputs of @main of which every element is an index as it is, into the
// rows of a table (`nn.gather`) or the classes of a loss, with how many there
// are (emit::kLimitAttr): tokens, labels. The least, where there are several.
void markIndexLimits(mlir::ModuleOp module);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_INDEX_LIMITS_H_
