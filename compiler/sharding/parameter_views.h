// Translates shardings of parameters from the shape in the model's file to the
// shape in which the compiler views them.
#ifndef PARTITA_COMPILER_SHARDING_PARAMETER_VIEWS_H_
#define PARTITA_COMPILER_SHARDING_PARAMETER_VIEWS_H_

#include <string>

#include "compiler/core/sharding.h"
#include "llvm/ADT/ArrayRef.h"
#include "mlir/IR/Value.h"

namespace partita::sharding {

// Translates the sharding of a tensor of shape `from` to shape `to`, which has
// the same elements in the same order. On success sets `viewed` and returns an
// empty string; else returns the part that cannot be expressed for `to`.
std::string viewSharding(const core::Mesh& mesh, llvm::ArrayRef<int64_t> from,
                         llvm::ArrayRef<int64_t> to,
                         const core::Sharding& sharding,
                         core::Sharding& viewed);

// Translates an override of an argument of @main. If the override's rank is
// that of the model's file, it is for that shape, else for the view. Result as
// above.
std::string viewOverride(const core::Mesh& mesh, mlir::BlockArgument argument,
                         const core::Sharding& sharding,
                         core::Sharding& viewed);

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_PARAMETER_VIEWS_H_
