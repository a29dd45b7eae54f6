// Applies the names that a user gives to dimensions.
#ifndef PARTITA_COMPILER_SHARDING_NAME_CORRECTIONS_H_
#define PARTITA_COMPILER_SHARDING_NAME_CORRECTIONS_H_

#include <string>

#include "compiler/sharding/dim_classes.h"
#include "compiler/sharding/find_names.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::sharding {

// Reads "h.*.mlp.up.weight:1=M; ..." and names the classes of these dimensions
// of parameters of @main. Patterns follow compiler/plan/glob.h. Fails with a
// diagnostic if a part is malformed, no parameter matches, a parameter lacks
// the dimension, or two parts name one class differently.
mlir::LogicalResult correctNames(mlir::ModuleOp module,
                                 const DimClasses& classes,
                                 llvm::StringRef corrections, Names& names);

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_NAME_CORRECTIONS_H_
