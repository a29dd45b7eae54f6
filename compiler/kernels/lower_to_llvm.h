// From functions on memrefs and vectors to optimised LLVM IR, for any target.
#ifndef PARTITA_COMPILER_KERNELS_LOWER_TO_LLVM_H_
#define PARTITA_COMPILER_KERNELS_LOWER_TO_LLVM_H_

#include "compiler/kernels/lower_math.h"
#include "mlir/IR/BuiltinOps.h"

namespace llvm {
class Module;
class TargetMachine;
}  // namespace llvm

namespace partita::kernels {

// The attribute of kernels that generateKernel has made: the sizes of their
// buffers in bytes.
inline constexpr char kBuffersAttr[] = "kernel.buffer_bytes";

// What bf16 is in LLVM.
enum class Bf16 {
  kFloat,    // where there are instructions for it
  kInteger,  // of 16 bits, where not: LLVM would take vectors apart, and call a
             // library for each number that is rounded
};

// Lowers all functions to the LLVM dialect, memrefs as bare pointers. Emits a
// diagnostic where it fails.
mlir::LogicalResult lowerToLlvm(mlir::ModuleOp module, MathLibrary library,
                                Bf16 bf16 = Bf16::kFloat);

// Runs LLVM's passes of level 1, 2 or 3, without its vectorisers: the code is
// vectors already.
void optimizeModule(llvm::Module& module, llvm::TargetMachine& machine,
                    int level);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_LOWER_TO_LLVM_H_
