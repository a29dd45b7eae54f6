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

// Attribute of kernels made by generateKernel: the sizes of their buffers in
// bytes.
inline constexpr char kBuffersAttr[] = "kernel.buffer_bytes";

// The representation of bf16 in LLVM.
enum class Bf16 {
  kFloat,    // bfloat, for targets that have instructions for it
  kInteger,  // i16, for the others: LLVM would take vectors apart, and call a
             // library to round each number
};

// Lowers all functions to the LLVM dialect, memrefs as bare pointers. Emits a
// diagnostic where it fails.
mlir::LogicalResult lowerToLlvm(mlir::ModuleOp module, MathLibrary library,
                                Bf16 bf16 = Bf16::kFloat);

// Runs LLVM's passes of level 1, 2 or 3, without its vectorisers: the code
// consists of vectors already.
void optimizeModule(llvm::Module& module, llvm::TargetMachine& machine,
                    int level);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_LOWER_TO_LLVM_H_
