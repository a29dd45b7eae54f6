// How much a kernel computes and reads, which its operands do not tell.
#ifndef PARTITA_COMPILER_EMIT_KERNEL_WORK_H_
#define PARTITA_COMPILER_EMIT_KERNEL_WORK_H_

#include <cstdint>

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::emit {

// On a kernel function whose code is several, launched one after the other with
// the same operands (compiler/kernels/generate_code.cc): of each a dictionary
// with its name, how it is launched, and what it does.
inline constexpr char kPartsAttr[] = "kernel.parts";

struct KernelWork {
  // Floating-point, of the products in `nn.attention` and its gradient, for the
  // pairs of queries and keys that see each other.
  int64_t operations = 0;
  // Of arguments, what nothing reads: all but the slices of a bucket of
  // gradients, all but the rows of a table that are gathered. Of a part, all
  // arguments and results that others read and write. Below 0: what is read
  // again, where statistics of all of a tensor come before its elements.
  int64_t unread_bytes = 0;
};

KernelWork workOf(mlir::func::FuncOp kernel);
// Of one of its parts.
KernelWork workOf(mlir::func::FuncOp kernel, mlir::DictionaryAttr part);

}  // namespace partita::emit

#endif  // PARTITA_COMPILER_EMIT_KERNEL_WORK_H_
