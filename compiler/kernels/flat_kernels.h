// Kernels that compute each element from those at its own place, so that one
// code serves tensors of many shapes: an optimizer's update of each parameter.
#ifndef PARTITA_COMPILER_KERNELS_FLAT_KERNELS_H_
#define PARTITA_COMPILER_KERNELS_FLAT_KERNELS_H_

#include <cstdint>
#include <vector>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::kernels {

// An attribute of what flatForm makes: elements of an item of the range. Its
// code serves all tensors that are some of these long.
inline constexpr char kFlatChunkAttr[] = "kernel.flat_chunk";

// Kernels that differ in their shapes only.
struct FlatGroup {
  // Items of the code's range have this many elements, a power of two that
  // divides the number of elements of each.
  int64_t chunk = 0;
  llvm::SmallVector<mlir::func::FuncOp> kernels;  // at least two
  llvm::SmallVector<int64_t> elements;            // of each
};

// In the order of their first kernels. What is in no group needs code of its
// own shape.
std::vector<FlatGroup> findFlatGroups(
    llvm::ArrayRef<mlir::func::FuncOp> kernels);

// A kernel of a group on tensors of one dimension, with many chunks, marked so
// that generateKernel makes the group's code of it; in no module, so that the
// caller erases it.
mlir::func::FuncOp flatForm(mlir::func::FuncOp kernel, int64_t chunk);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_FLAT_KERNELS_H_
