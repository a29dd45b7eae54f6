// Loops that combine many elements into one.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_REDUCTION_H_
#define PARTITA_COMPILER_KERNELS_EMIT_REDUCTION_H_

#include "compiler/kernels/emit_elements.h"
#include "dialects/nn/dialect.h"

namespace partita::kernels {

// The loops of one reduction.
struct ReductionLoops {
  nn::ReduceKind kind;
  mlir::Type type;                   // of the elements, as computed
  llvm::SmallVector<int64_t> sizes;  // of the loops
  const Symbol* lanes =
      nullptr;  // of the result; null: the innermost loop has lanes of its own
};

// `element` emits the element at an index of the loops. Where neighbouring
// loops walk memory in one go they become one.
mlir::FailureOr<Lanes> emitReduction(
    Emitter& emitter, const ReductionLoops& reduction,
    llvm::function_ref<mlir::FailureOr<Lanes>(llvm::ArrayRef<Index>)> element);

// The value that changes nothing, as a scalar.
mlir::Value neutralElement(Emitter& emitter, nn::ReduceKind kind,
                           mlir::Type type);
mlir::Value combine(Emitter& emitter, nn::ReduceKind kind, mlir::Value a,
                    mlir::Value b);
// Combines all lanes of a vector into a scalar.
mlir::Value combineLanes(Emitter& emitter, nn::ReduceKind kind,
                         mlir::Value vector);

// Sizes from the innermost outwards, each dividing the next, that split `size`
// at those boundaries that allow it; the last is `size`.
llvm::SmallVector<int64_t> chainOfSizes(llvm::ArrayRef<int64_t> boundaries,
                                        int64_t size);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_REDUCTION_H_
