// Values as strided views of memory, as libraries read operands.
#ifndef PARTITA_COMPILER_KERNELS_STRIDED_VIEW_H_
#define PARTITA_COMPILER_KERNELS_STRIDED_VIEW_H_

#include <cstdint>
#include <optional>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "mlir/IR/Value.h"

namespace partita::kernels {

// A value as a strided view of another value's dense memory, in elements.
struct StridedView {
  mlir::Value base;
  llvm::SmallVector<int64_t> strides;  // one per dimension of the value
  int64_t offset = 0;                  // of its first element
};

// Strides of a dense tensor, outermost dimension first.
llvm::SmallVector<int64_t> denseStrides(llvm::ArrayRef<int64_t> shape);

// Strides of a reshape of a tensor with this shape and these strides, or
// nothing if it needs a copy.
std::optional<llvm::SmallVector<int64_t>> reshapedStrides(
    llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> strides,
    llvm::ArrayRef<int64_t> new_shape);

// The value itself.
StridedView denseView(mlir::Value value);

// Looks through transposes, reshapes and broadcasts while strides can express
// them. The offset is 0.
StridedView viewOf(mlir::Value value);
// Looks through slices, too.
StridedView viewOfSlices(mlir::Value value);

// Several dimensions as one (size, stride).
struct Extent {
  int64_t size = 1;
  int64_t stride = 0;
};

// The dimensions `dims` of `value` as one, or nothing if their strides do not
// allow it.
std::optional<Extent> collapse(mlir::Value value, const StridedView& view,
                               llvm::ArrayRef<int64_t> dims);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_STRIDED_VIEW_H_
