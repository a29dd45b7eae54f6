// Entries of a plan that act on a part of the model only.
#ifndef PARTITA_COMPILER_SHARDING_SCOPES_H_
#define PARTITA_COMPILER_SHARDING_SCOPES_H_

#include <vector>

#include "compiler/plan/plan.h"
#include "compiler/sharding/problem.h"
#include "llvm/ADT/DenseMap.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::sharding {

// Copies each function that is called where different entries act, so that one
// set of entries acts on each of its operations. Fails, with a diagnostic,
// where the scope of an entry holds nothing of the model.
mlir::LogicalResult splitByScope(mlir::ModuleOp module, const plan::Plan& plan);

// Bars each scoped entry, whose priority is its number plus `first`, from the
// operations and values outside of its scope. Results are where their operation
// is; arguments and constants, where any operation that uses them is. The
// functions have been split.
void barOutside(mlir::ModuleOp module, const plan::Plan& plan, int first,
                Problem& problem);

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_SCOPES_H_
