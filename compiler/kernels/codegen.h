// From one kernel function to code for the CPU.
//
// A kernel function is a private func.func on tensors. Its code has the C
// interface
//   void NAME(void *const *buffers, int64_t begin, int64_t end, void *scratch)
// where `buffers` are the arguments, the results and then the kernel's tensor
// maps (KernelCode::maps), dense, row-major, aligned to 64 bytes and not
// overlapping (i1: a byte per element); [begin, end) is a part of [0, range),
// so that parts may run on several threads; and `scratch` is a thread's own
// memory of `scratch_bytes`, aligned to 64 bytes, to 1024 where it is a team's.
// On GPUs some kernels are several such functions, which run one after the
// other (KernelCode::before) with nothing in between.
#ifndef PARTITA_COMPILER_KERNELS_CODEGEN_H_
#define PARTITA_COMPILER_KERNELS_CODEGEN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/kernels/kernel_op_interface.h"
#include "compiler/kernels/tensor_map.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::kernels {

// Threads of a GPU's warp, which is a team; of a block, four teams or one.
inline constexpr int64_t kWarp = 32;
inline constexpr int64_t kBlock = 128;

// What one of a kernel's functions does of what the kernel's body says.
struct PartWork {
  // Products of each pair of a query and a key, in the head's size of keys and
  // of values.
  int64_t of_keys = 0, of_values = 0;
  int64_t untouched_bytes = 0;  // of arguments and results
};

struct KernelCode {
  std::string symbol;
  int64_t range = 0;  // 0 if there is nothing to compute
  int64_t grain = 1;  // the smallest part of the range worth a thread (about 20
                      // microseconds of work)
  double cycles = 0;  // of one core, for one of the range, roughly
  int64_t scratch_bytes = 0;  // per thread, or per team
  int64_t team = 1;           // threads that compute an item together
  // Kernels that run first, in this order, each when the one before has ended,
  // on the same buffers; and bytes of memory that these and this one have, as
  // one more buffer behind the results. Such kernels have no maps.
  std::vector<KernelCode> before;
  int64_t memory_bytes = 0;
  std::vector<TensorMap> maps;
  std::optional<PartWork> work;  // absent: what its body says
};

// What code is generated for.
struct CodegenOptions {
  int64_t vector_bytes = 64;  // of a vector register
  // More than 1: each item of the range is computed by so many threads
  // together, where the kind of kernel allows it (emit_team.h).
  int64_t team = 1;
  // With teams of kWarp: products of 16-bit matrices by warps, and teams of
  // kBlock for what is made of them (emit_fragments.h).
  bool tensor_cores = false;
  // With tensor_cores: products by warpgroups, too (emit_warpgroup.h).
  bool warpgroups = false;
  // With warpgroups: shared memory that a block may have, in bytes. Kernels
  // that would need more are made for warps.
  int64_t shared_bytes = 0;
};
// Those of the machine that runs the compiler.
CodegenOptions hostCodegenOptions();

// Appends to `target` a function on memrefs that computes `kernel`, under its
// name. `kernel` stays as it is. Emits a diagnostic where it fails.
mlir::FailureOr<KernelCode> generateKernel(
    mlir::func::FuncOp kernel, mlir::ModuleOp target,
    const CodegenOptions& options = hostCodegenOptions());

// What each of the functions that generateKernel makes does, in their order;
// none where there is one, which does what the kernel's body says. `kernel`
// stays as it is. Emits a diagnostic where it fails, as generateKernel does.
mlir::FailureOr<llvm::SmallVector<PartWork>> partWorkOf(
    mlir::func::FuncOp kernel, const CodegenOptions& options);

// Registers the dialects that generated code consists of. A pass that generates
// kernels depends on them.
void registerCodegenDialects(mlir::DialectRegistry& registry);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_CODEGEN_H_
