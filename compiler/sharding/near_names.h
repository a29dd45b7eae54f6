// What a user may have meant by a pattern that matches nothing.
#ifndef PARTITA_COMPILER_SHARDING_NEAR_NAMES_H_
#define PARTITA_COMPILER_SHARDING_NEAR_NAMES_H_

#include <string>
#include <vector>

#include "llvm/ADT/StringRef.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::sharding {

// "'h.0.up', 'h.0.down'": the three of `names` (layers, tensors) that differ
// least from a pattern, which may leave out what stands around a layer. Empty
// where there are none.
std::string nearNames(const std::vector<std::string>& patterns,
                      const std::vector<std::string>& names);

// The names of a function's arguments that have one.
std::vector<std::string> argumentNames(mlir::func::FuncOp function);

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_NEAR_NAMES_H_
