// Names that values have already, as names of classes.
#ifndef PARTITA_COMPILER_SHARDING_GIVEN_NAMES_H_
#define PARTITA_COMPILER_SHARDING_GIVEN_NAMES_H_

#include "compiler/sharding/dim_classes.h"
#include "compiler/sharding/find_names.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::sharding {

// Adds to `names` what the attributes nn.dims of arguments and operations say
// of the classes that have no name yet; texts that do not fit a value's shape
// say nothing. Returns whether there was any: then a module was named before it
// was rewritten (differentiated), and what the rewriting added gets its names
// from what it is tied to, not from a structure that is no model's.
bool readGivenNames(mlir::ModuleOp module, const DimClasses& classes,
                    Names& names);

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_GIVEN_NAMES_H_
