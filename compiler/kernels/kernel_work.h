// Work of a kernel that does not follow from the sizes of its operands.
#ifndef PARTITA_COMPILER_KERNELS_KERNEL_WORK_H_
#define PARTITA_COMPILER_KERNELS_KERNEL_WORK_H_

#include <cstdint>

#include "dialects/exec/dialect.h"
#include "dialects/exec/kernel_parts.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::kernels {

struct KernelWork {
  // Floating-point operations of matrix products: in `nn.attention` and its
  // gradient, counted for the pairs of queries and keys that see each other; in
  // `nn.ordered_dot` and its gradient, for one matrix per row. Where experts
  // are divided, the mean share of rows counts that have a matrix
  // (dialects/nn/row_share.h).
  int64_t operations = 0;
  // Bytes of the arguments that the kernel does not read: all of a gradient
  // bucket but its slices, all of a table but the gathered rows. For one part
  // of a kernel, also the arguments and results of other parts. Negative if a
  // tensor is read again, as batch norm reads its input for the statistics and
  // then for the result.
  int64_t unread_bytes = 0;
};

KernelWork workOf(mlir::func::FuncOp kernel);
// The same for one part of the kernel.
KernelWork workOf(mlir::func::FuncOp kernel, const exec::KernelPart& part);

// Sets `operations` and `unread` of a launch; omits zeros.
void setWork(exec::LaunchOp launch, const KernelWork& work);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_KERNEL_WORK_H_
