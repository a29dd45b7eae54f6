// Helpers of the rules of elementwise operations.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_ELEMENTWISE_H_
#define PARTITA_COMPILER_KERNELS_EMIT_ELEMENTWISE_H_

#include "compiler/kernels/emit_elements.h"
#include "mlir/IR/TypeUtilities.h"

namespace partita::kernels {

struct Operands {
  llvm::SmallVector<mlir::Value> values;
  int64_t lanes = 0;
};

inline mlir::Type elementOf(mlir::Value tensor) {
  return mlir::getElementTypeOrSelf(tensor.getType());
}

// The operands' elements, all with the same number of lanes.
mlir::FailureOr<Operands> operandsAt(mlir::Operation* op, Emitter& emitter,
                                     llvm::ArrayRef<Index> index);
// The operation itself, on scalars or vectors; result `number` of it.
Lanes cloneOn(mlir::Operation* op, Emitter& emitter, unsigned number,
              const Operands& operands);

template <template <typename> class Model, typename... Ops>
void attachModel(mlir::MLIRContext& context) {
  (Ops::template attachInterface<Model<Ops>>(context), ...);
}

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_ELEMENTWISE_H_
