// Shardings of parameters as the model's file has them, where the compiler
// views them in another shape.
#ifndef PARTITA_COMPILER_SHARDING_PARAMETER_VIEWS_H_
#define PARTITA_COMPILER_SHARDING_PARAMETER_VIEWS_H_

#include <string>

#include "compiler/core/sharding.h"
#include "llvm/ADT/ArrayRef.h"
#include "mlir/IR/Value.h"

namespace partita::sharding {

// The sharding of a tensor of shape `from` as that of shape `to`, which has the
// same elements in the same order. Empty where it is in `viewed`; else what
// cannot be said of `to`.
std::string viewSharding(const core::Mesh& mesh, llvm::ArrayRef<int64_t> from,
                         llvm::ArrayRef<int64_t> to,
                         const core::Sharding& sharding,
                         core::Sharding& viewed);

// What an override says of an argument of @main: of its dimensions in the
// model's file, or, where it has as many as the view, of those. As above.
std::string viewOverride(const core::Mesh& mesh, mlir::BlockArgument argument,
                         const core::Sharding& sharding,
                         core::Sharding& viewed);

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_PARAMETER_VIEWS_H_
