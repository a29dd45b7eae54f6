// From generated functions to PTX, the assembly that NVIDIA's driver compiles.
#ifndef PARTITA_COMPILER_KERNELS_PTX_H_
#define PARTITA_COMPILER_KERNELS_PTX_H_

#include <cstdint>
#include <string>

#include "compiler/kernels/codegen.h"
#include "llvm/ADT/ArrayRef.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::kernels {

// How a kernel is launched: `blocks` blocks of kBlock threads. Its parameters
// are the addresses of its buffers, in device memory; its tensor maps, of
// kTensorMapBytes, aligned to 64; and then, unless it is 0, the address of
// `scratch_bytes` of device memory that is its own for the launch.
struct PtxKernel {
  std::string symbol;
  int64_t blocks = 0;
  int64_t scratch_bytes = 0;
  int64_t shared_bytes = 0;  // of a block's shared memory, to be asked for
  std::vector<TensorMap> maps = {};
};

// The version of PTX that is written, as LLVM says it: what CUDA 12 and later
// read.
inline constexpr char kPtxFeatures[] = "+ptx80";

struct PtxOptions {
  std::string chip = "sm_90";  // a name LLVM knows
  int opt_level = 3;
};

// What generateKernel is to be given for this target.
CodegenOptions ptxCodegenOptions(const PtxOptions& options = {});

// How a kernel of generateKernel's is launched, without those before it.
PtxKernel ptxKernelOf(const KernelCode& code, const PtxOptions& options);

// Lowers what generateKernel appended to `target` (which it consumes) to PTX
// text: each of `kernels`, and those that run before it. Emits a diagnostic
// where it fails.
mlir::FailureOr<std::string> compileToPtx(mlir::ModuleOp target,
                                          llvm::ArrayRef<KernelCode> kernels,
                                          const PtxOptions& options);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_PTX_H_
