// Loops over all results of a kernel.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_GROUPS_H_
#define PARTITA_COMPILER_KERNELS_EMIT_GROUPS_H_

#include <vector>

#include "compiler/kernels/emit_nest.h"

namespace partita::kernels {

// Groups result values by shape, in order of first appearance. Results without
// elements are in no group.
std::vector<llvm::SmallVector<Output>> groupOutputs(mlir::func::FuncOp kernel,
                                                    mlir::func::FuncOp body);

// Emits the results of `kernel` into `body`, whose last arguments are the begin
// and the end of the range and scratch. `flat_chunk` is the chunk of a kernel
// made by flatForm, or 0. Returns the range.
mlir::FailureOr<int64_t> emitGroups(Emitter& emitter, mlir::func::FuncOp kernel,
                                    mlir::func::FuncOp body,
                                    int64_t flat_chunk);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_GROUPS_H_
