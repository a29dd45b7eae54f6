// How much a kernel computes and reads, which its operands do not tell.
#ifndef PARTITA_COMPILER_EMIT_KERNEL_WORK_H_
#define PARTITA_COMPILER_EMIT_KERNEL_WORK_H_

#include <cstdint>

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::emit {

struct KernelWork {
  // Floating-point, of the products in `nn.attention` and its gradient, for the
  // pairs of queries and keys that see each other.
  int64_t operations = 0;
  // Of arguments, what nothing reads: all but the slices of a bucket of
  // gradients, all but the rows of a table that are gathered.
  int64_t unread_bytes = 0;
};

KernelWork workOf(mlir::func::FuncOp kernel);

}  // namespace partita::emit

#endif  // PARTITA_COMPILER_EMIT_KERNEL_WORK_H_
