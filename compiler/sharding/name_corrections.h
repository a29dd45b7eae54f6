// What a user says dimensions mean.
#ifndef PARTITA_COMPILER_SHARDING_NAME_CORRECTIONS_H_
#define PARTITA_COMPILER_SHARDING_NAME_CORRECTIONS_H_

#include <string>

#include "compiler/sharding/dim_classes.h"
#include "compiler/sharding/find_names.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::sharding {

// Reads "h.*.mlp.up.weight:1=M; ..." and names the classes of those dimensions
// of parameters of @main. Fails with a diagnostic where a part is not of that
// form, no parameter matches, one lacks the dimension, or two give a class
// different names. Patterns are those of compiler/plan/glob.h.
mlir::LogicalResult correctNames(mlir::ModuleOp module,
                                 const DimClasses& classes,
                                 llvm::StringRef corrections, Names& names);

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_NAME_CORRECTIONS_H_
