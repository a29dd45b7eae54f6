// Kernels that consist of several GPU functions. One launch runs them in
// sequence with the same operands.
#ifndef PARTITA_DIALECTS_EXEC_KERNEL_PARTS_H_
#define PARTITA_DIALECTS_EXEC_KERNEL_PARTS_H_

#include <cstdint>
#include <string>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "mlir/IR/Operation.h"

namespace partita::exec {

// One function of such a kernel: its launch parameters (`blocks`, `scratch` and
// `shared` as in `exec.launch`) and its share of the kernel's work.
struct KernelPart {
  std::string code;  // name of the function
  int64_t blocks = 0, scratch = 0, shared = 0;
  // Number of products of head-sized vectors that it computes for each pair of
  // a query and a key: with the head size of the keys, and with that of the
  // values.
  int64_t products_of_keys = 0, products_of_values = 0;
  int64_t untouched = 0;  // bytes of arguments and results that it does not
                          // access
};

// Write and read the attribute `kernel.parts` of a kernel function, in launch
// order. The last part has the function's name. An empty list means that the
// kernel is one function with the launch's own parameters.
void setKernelParts(mlir::Operation* kernel, llvm::ArrayRef<KernelPart> parts);
llvm::SmallVector<KernelPart> kernelParts(mlir::Operation* kernel);
// True if the attribute is there, even if it is malformed.
bool hasKernelParts(mlir::Operation* kernel);

}  // namespace partita::exec

#endif  // PARTITA_DIALECTS_EXEC_KERNEL_PARTS_H_
