// Sums of products by an equation, such as "ij,jk->ik".
#ifndef PARTITA_FRONTENDS_BUILDER_EINSUM_H_
#define PARTITA_FRONTENDS_BUILDER_EINSUM_H_

#include "frontends/builder/emitter.h"

namespace partita::builder {

// Spaces are ignored, and an ellipsis means dimensions aligned on the
// right. Reports an error and returns null if the equation does not fit.
Val einsum(Emitter& e, llvm::StringRef equation, llvm::ArrayRef<Val> inputs);

}  // namespace partita::builder

#endif  // PARTITA_FRONTENDS_BUILDER_EINSUM_H_
