// Loops that combine many elements into one.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_REDUCTION_H_
#define PARTITA_COMPILER_KERNELS_EMIT_REDUCTION_H_

#include "compiler/kernels/emit_elements.h"
#include "dialects/nn/dialect.h"

namespace partita::kernels {

// The loops of one reduction.
struct ReductionLoops {
  nn::ReduceKind kind;
  mlir::Type type;                   // compute type of the elements
  llvm::SmallVector<int64_t> sizes;  // of the loops, outermost first
  // Lanes of the result; null: the innermost loop has lanes of its own.
  const Symbol* lanes = nullptr;
};

// `element` emits the element at an index of the loops. Neighbouring loops over
// contiguous memory become one.
mlir::FailureOr<Lanes> emitReduction(
    Emitter& emitter, const ReductionLoops& reduction,
    llvm::function_ref<mlir::FailureOr<Lanes>(llvm::ArrayRef<Index>)> element);

// The neutral element of the reduction, as a scalar.
mlir::Value neutralElement(Emitter& emitter, nn::ReduceKind kind,
                           mlir::Type type);
mlir::Value combine(Emitter& emitter, nn::ReduceKind kind, mlir::Value a,
                    mlir::Value b);
// Combines all lanes of a vector into a scalar.
mlir::Value combineLanes(Emitter& emitter, nn::ReduceKind kind,
                         mlir::Value vector);

// Splits `size` at the boundaries that allow it. Returns sizes from the
// innermost outwards, each dividing the next; the last is `size`.
llvm::SmallVector<int64_t> chainOfSizes(llvm::ArrayRef<int64_t> boundaries,
                                        int64_t size);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_REDUCTION_H_
