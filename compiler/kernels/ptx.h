// From generated functions to PTX, the assembly that NVIDIA's driver compiles.
#ifndef PARTITA_COMPILER_KERNELS_PTX_H_
#define PARTITA_COMPILER_KERNELS_PTX_H_

#include <cstdint>
#include <string>

#include "compiler/kernels/codegen.h"
#include "llvm/ADT/ArrayRef.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::kernels {

// The launch of a kernel: `blocks` blocks of kBlock threads. The parameters are
// the addresses of its buffers in device memory; its tensor maps, of
// kTensorMapBytes each, aligned to 64; and then, unless it is 0, the address of
// `scratch_bytes` of device memory that the launch has to itself. The only
// parameter of code that takes pieces is a table (dialects/exec/piece_table.h).
struct PtxKernel {
  std::string symbol;
  int64_t blocks = 0;
  int64_t scratch_bytes = 0;
  int64_t shared_bytes = 0;  // per block; a launch must request them
  std::vector<TensorMap> maps = {};
};

// The PTX version of generated code, as LLVM names it. CUDA 12 and later read
// it.
inline constexpr char kPtxFeatures[] = "+ptx80";

struct PtxOptions {
  std::string chip = "sm_90";  // a name LLVM knows
  int opt_level = 3;
};

// The options of generateKernel for this target.
CodegenOptions ptxCodegenOptions(const PtxOptions& options = {});

// The launch of a kernel made by generateKernel, without the kernels before it.
PtxKernel ptxKernelOf(const KernelCode& code, const PtxOptions& options);

// Lowers the functions that generateKernel appended to `target` to PTX text:
// each of `kernels`, and the kernels that run before it. Consumes `target`.
// Emits a diagnostic on failure.
mlir::FailureOr<std::string> compileToPtx(mlir::ModuleOp target,
                                          llvm::ArrayRef<KernelCode> kernels,
                                          const PtxOptions& options);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_PTX_H_
