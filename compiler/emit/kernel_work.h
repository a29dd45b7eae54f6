// How much a kernel computes and reads, which its operands do not tell.
#ifndef PARTITA_COMPILER_EMIT_KERNEL_WORK_H_
#define PARTITA_COMPILER_EMIT_KERNEL_WORK_H_

#include <cstdint>
#include <optional>

#include "dialects/exec/kernel_parts.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::emit {

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

// How many pairs see each other: query i the keys up to i + offset, or all.
int64_t pairsOf(int64_t queries, int64_t keys, std::optional<int64_t> offset);

KernelWork workOf(mlir::func::FuncOp kernel);
// Of one of its parts.
KernelWork workOf(mlir::func::FuncOp kernel, const exec::KernelPart& part);

}  // namespace partita::emit

#endif  // PARTITA_COMPILER_EMIT_KERNEL_WORK_H_
