// Compiles a kernel from text, runs it on this machine and compares it with the
// interpreter.
#ifndef PARTITA_COMPILER_KERNELS_CODEGEN_FIXTURE_H_
#define PARTITA_COMPILER_KERNELS_CODEGEN_FIXTURE_H_

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "compiler/kernels/codegen.h"
#include "compiler/kernels/object.h"
#include "compiler/kernels/ptx.h"
#include "dialects/nn/tensor.h"
#include "mlir/IR/OwningOpRef.h"

namespace partita::kernels {

// Bytes of a tensor or of scratch, aligned to 1024, with a guard behind them
// that tells whether something wrote there.
class AlignedBytes {
 public:
  explicit AlignedBytes(size_t size);
  AlignedBytes(AlignedBytes&& other) noexcept;
  ~AlignedBytes();

  char* data() { return data_; }
  size_t size() const { return size_; }
  bool isGuardIntact() const;

 private:
  size_t size_;
  char* data_;
};

// The function @k of a module, compiled and loaded.
class CompiledKernel {
 public:
  // Null, with diagnostics on stderr, where something fails. With `flat` the
  // code is that of the group of the module's functions (flat_kernels.h) which
  // it must be in. `change` may change what has been generated. `object` may
  // name less than this machine's processor.
  static std::unique_ptr<CompiledKernel> fromText(
      const std::string& text,
      const CodegenOptions& options = hostCodegenOptions(), bool flat = false,
      llvm::function_ref<void(mlir::ModuleOp)> change = nullptr,
      const ObjectOptions& object = {});
  ~CompiledKernel();

  const KernelCode& code() const { return code_; }
  double compileSeconds() const { return compile_seconds_; }
  mlir::func::FuncOp function() { return function_; }

  // Floats of a normal distribution (times `scale`), integers from 0 to 9,
  // truth values.
  std::vector<nn::Tensor> randomArguments(std::mt19937& generator,
                                          double scale = 1);
  // A buffer for each argument, filled, and one for each result.
  std::vector<AlignedBytes> makeBuffers(
      const std::vector<nn::Tensor>& arguments);
  // A team's threads run in turns, item by item. Where the kernel has several
  // parts, all of each runs.
  void run(std::vector<AlignedBytes>& buffers, int64_t begin, int64_t end);
  // Results, after running the range in parts that end at these fractions of
  // it.
  std::vector<nn::Tensor> results(const std::vector<nn::Tensor>& arguments,
                                  const std::vector<double>& parts);

  // What differs from the interpreter on random arguments, run in one part and
  // in three; empty if nothing does.
  std::string difference(double absolute, double relative, double scale = 1);

 private:
  CompiledKernel() = default;
  mlir::FailureOr<KernelCode> generateShared(mlir::ModuleOp target,
                                             const CodegenOptions& options);

  mlir::MLIRContext context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  mlir::func::FuncOp function_;
  KernelCode code_;
  double compile_seconds_ = 0;
  void* library_ = nullptr;
  using Entry = void (*)(void* const*, int64_t, int64_t, void*);
  void runPart(const KernelCode& code, Entry entry,
               const std::vector<void*>& pointers, int64_t begin, int64_t end);
  Entry find(const KernelCode& code);

  Entry entry_ = nullptr;
};

// The PTX of function @k for a GPU, and how it is launched; empty, with
// diagnostics on stderr, where something fails.
std::string ptxOf(const std::string& text, const std::string& chip,
                  PtxKernel& launch);
// The same of a kernel that may have several parts.
std::string ptxOf(const std::string& text, const std::string& chip,
                  llvm::SmallVectorImpl<PtxKernel>& launches);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_CODEGEN_FIXTURE_H_
