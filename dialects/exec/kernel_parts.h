// Kernel functions whose code is several, which one launch runs one after the
// other with the same operands.
#ifndef PARTITA_DIALECTS_EXEC_KERNEL_PARTS_H_
#define PARTITA_DIALECTS_EXEC_KERNEL_PARTS_H_

#include <cstdint>
#include <string>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "mlir/IR/Operation.h"

namespace partita::exec {

// One of them: how it is launched, with `blocks`, `scratch` and `shared` as
// `exec.launch` has them, and what it does of what the kernel's body says.
struct KernelPart {
  std::string code;  // its name
  int64_t blocks = 0, scratch = 0, shared = 0;
  // Products of each pair of a query and a key, in the head's size of keys and
  // of values.
  int64_t products_of_keys = 0, products_of_values = 0;
  int64_t untouched = 0;  // bytes of arguments and results
};

// Writes and reads `kernel.parts` of a kernel function, in the order in which
// they run; the last has the function's name. None means that the code is one,
// of the launch's own numbers.
void setKernelParts(mlir::Operation* kernel, llvm::ArrayRef<KernelPart> parts);
llvm::SmallVector<KernelPart> kernelParts(mlir::Operation* kernel);

}  // namespace partita::exec

#endif  // PARTITA_DIALECTS_EXEC_KERNEL_PARTS_H_
