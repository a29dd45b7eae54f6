// Elements of a padded tensor.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_PAD_H_
#define PARTITA_COMPILER_KERNELS_EMIT_PAD_H_

#include "compiler/kernels/emit_elements.h"

namespace partita::kernels {

// The element of `tensor` at `index` if that lies inside; else `outside`.
// Nothing outside is read.
mlir::FailureOr<Lanes> emitPadded(Emitter& emitter, mlir::Value tensor,
                                  llvm::ArrayRef<Index> index, Lanes outside);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_PAD_H_
