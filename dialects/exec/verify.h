// What the verifiers of exec's operations share.
#ifndef PARTITA_DIALECTS_EXEC_VERIFY_H_
#define PARTITA_DIALECTS_EXEC_VERIFY_H_

#include <cstdint>

#include "llvm/ADT/STLExtras.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"

namespace partita::exec {

// `value` must be a ranked tensor.
inline mlir::RankedTensorType typeOf(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType());
}

// The number of elements that an access to [sizes] with these strides needs.
inline int64_t reach(llvm::ArrayRef<int64_t> sizes,
                     llvm::ArrayRef<int64_t> strides) {
  int64_t last = 0;
  for (auto [size, stride] : llvm::zip_equal(sizes, strides))
    last += (size - 1) * stride;
  return last + 1;
}

}  // namespace partita::exec

#endif  // PARTITA_DIALECTS_EXEC_VERIFY_H_
