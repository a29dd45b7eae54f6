// Flat kernels compute each element from the elements at the same position, so
// that one code serves tensors of many shapes: an optimizer's update of each
// parameter.
#ifndef PARTITA_COMPILER_KERNELS_FLAT_KERNELS_H_
#define PARTITA_COMPILER_KERNELS_FLAT_KERNELS_H_

#include <cstdint>
#include <vector>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::kernels {

// Attribute of functions made by flatForm: elements per item of the range. The
// code serves all tensors whose number of elements is a multiple of this.
inline constexpr char kFlatChunkAttr[] = "kernel.flat_chunk";

// Kernels that differ in their shapes only.
struct FlatGroup {
  // Elements per item of the code's range: a power of two that divides the
  // number of elements of each kernel.
  int64_t chunk = 0;
  llvm::SmallVector<mlir::func::FuncOp> kernels;  // at least two on CPUs
  llvm::SmallVector<int64_t> elements;            // per kernel
};

// Returns groups in the order of their first kernels. A kernel in no group
// needs code for its own shape.
std::vector<FlatGroup> findFlatGroups(
    llvm::ArrayRef<mlir::func::FuncOp> kernels);

// The same for GPUs. A group may have a single kernel. Large chunks keep warps
// busy, so kernels that allow them are not in a group with others.
std::vector<FlatGroup> findFlatGroupsForGpus(
    llvm::ArrayRef<mlir::func::FuncOp> kernels);

// Returns a kernel of a group rewritten on one-dimensional tensors of many
// chunks, and marked so that generateKernel makes the group's code from it. It
// is in no module: the caller erases it.
mlir::func::FuncOp flatForm(mlir::func::FuncOp kernel, int64_t chunk);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_FLAT_KERNELS_H_
