// Suggests names for a pattern that matches nothing.
#ifndef PARTITA_COMPILER_SHARDING_NEAR_NAMES_H_
#define PARTITA_COMPILER_SHARDING_NEAR_NAMES_H_

#include <string>
#include <vector>

#include "llvm/ADT/StringRef.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::sharding {

// Returns the three of `names` (layers or tensors) closest to a pattern, as
// "'h.0.up', 'h.0.down'". A pattern may omit the leading parts of a name.
// Returns an empty string if `names` is empty.
std::string nearNames(const std::vector<std::string>& patterns,
                      const std::vector<std::string>& names);

// Returns the names of a function's arguments, skipping unnamed ones.
std::vector<std::string> argumentNames(mlir::func::FuncOp function);

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_NEAR_NAMES_H_
