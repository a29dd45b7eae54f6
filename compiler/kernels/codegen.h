// Generates code for one kernel function.
//
// A kernel function is a private func.func on tensors. Its code has the C
// interface
//   void NAME(void *const *buffers, int64_t begin, int64_t end, void *scratch)
// `buffers` holds the arguments, the results and then the kernel's tensor maps
// (KernelCode::maps). Arguments and results are dense, row-major, aligned to 64
// bytes and do not overlap; i1 takes a byte per element. [begin, end) is a part
// of [0, range), so that several threads can run parts of the range. `scratch`
// is the thread's own memory of `scratch_bytes`, aligned to 64 bytes; a team's
// scratch is aligned to 1024.
//
// On GPUs some kernels consist of several such functions, which run one after
// the other (KernelCode::before) with no other work in between.
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

// Threads of a GPU's warp, which is a team, and of a block, which is four teams
// or one.
inline constexpr int64_t kWarp = 32;
inline constexpr int64_t kBlock = 128;

// The share of a kernel's work that one of its functions does.
struct PartWork {
  // Matrix products per pair of a query and a key: over the head size of keys,
  // and over the head size of values.
  int64_t of_keys = 0, of_values = 0;
  // Bytes of arguments and results that the function does not access.
  int64_t untouched_bytes = 0;
};

struct KernelCode {
  std::string symbol;
  int64_t range = 0;  // items; 0 if there is nothing to compute
  int64_t grain = 1;  // smallest part of the range worth a thread: about 20
                      // microseconds of work
  double cycles = 0;  // estimate for one item on one core
  int64_t scratch_bytes = 0;  // per thread, or per team
  int64_t team = 1;           // threads that compute an item together
  // Functions that run before this one on the same buffers, in this order; each
  // starts when the one before has ended. All of them share one more buffer of
  // `memory_bytes` behind the results and each one's maps.
  std::vector<KernelCode> before;
  int64_t memory_bytes = 0;
  // On GPUs: the kernel runs on several lists of buffers, given by a table
  // (dialects/exec/piece_table.h). The range is that of one list.
  bool takes_pieces = false;
  std::vector<TensorMap> maps;
  std::optional<PartWork> work;  // absent: all of the body's work
};

// The properties of a target that code generation depends on.
struct CodegenOptions {
  int64_t vector_bytes = 64;  // size of a vector register
  // Threads that compute an item of the range together, for the kinds of
  // kernels that allow it (emit_team.h). 1: no teams.
  int64_t team = 1;
  // With teams of kWarp: warps multiply matrices of bf16, f16 and f32 on tensor
  // cores, and kernels built from such products get teams of kBlock
  // (emit_fragments.h).
  bool tensor_cores = false;
  // With tensor_cores: warpgroups multiply, too (emit_warpgroup.h).
  bool warpgroups = false;
  // With warpgroups: upper bound of a block's shared memory, in bytes. Kernels
  // that need more are generated for warps.
  int64_t shared_bytes = 0;
};
// Options for the machine that runs the compiler.
CodegenOptions hostCodegenOptions();

// Appends to `target` a function on memrefs that computes `kernel`, under its
// name. Does not change `kernel`. Emits a diagnostic on failure.
mlir::FailureOr<KernelCode> generateKernel(
    mlir::func::FuncOp kernel, mlir::ModuleOp target,
    const CodegenOptions& options = hostCodegenOptions());

// Returns the work of each function that generateKernel makes, in their order;
// empty if a single function does all of the body's work. Does not change
// `kernel`. Emits a diagnostic on failure, as generateKernel does.
mlir::FailureOr<llvm::SmallVector<PartWork>> partWorkOf(
    mlir::func::FuncOp kernel, const CodegenOptions& options);

// Registers the dialects of generated code. Passes that generate kernels depend
// on them.
void registerCodegenDialects(mlir::DialectRegistry& registry);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_CODEGEN_H_
