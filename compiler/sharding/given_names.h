// Reads the names that values already have, as names of classes.
#ifndef PARTITA_COMPILER_SHARDING_GIVEN_NAMES_H_
#define PARTITA_COMPILER_SHARDING_GIVEN_NAMES_H_

#include "compiler/sharding/dim_classes.h"
#include "compiler/sharding/find_names.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::sharding {

// Adds the names in nn.dims attributes of arguments and operations to `names`,
// for classes without a name. Ignores texts that do not fit the value's shape.
// Returns true if there was any name: then the module was named before it was
// rewritten (differentiated), and new values get their names from the values
// that they are tied to, not from the model's structure.
bool readGivenNames(mlir::ModuleOp module, const DimClasses& classes,
                    Names& names);

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_GIVEN_NAMES_H_
