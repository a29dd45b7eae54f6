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

// Bytes of a tensor or of scratch, aligned to 1024. A guard behind them detects
// writes past the end.
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
  // Returns null, with diagnostics on stderr, on failure. With `flat`, the code
  // is that of the flat group (flat_kernels.h) which must contain @k. `change`
  // may modify the generated module. `object` may name an older processor than
  // this machine's.
  static std::unique_ptr<CompiledKernel> fromText(
      const std::string& text,
      const CodegenOptions& options = hostCodegenOptions(), bool flat = false,
      llvm::function_ref<void(mlir::ModuleOp)> change = nullptr,
      const ObjectOptions& object = {});
  ~CompiledKernel();

  const KernelCode& code() const { return code_; }
  double compileSeconds() const { return compile_seconds_; }
  mlir::func::FuncOp function() { return function_; }
  mlir::ModuleOp module() { return *module_; }

  // Floats are normally distributed, times `scale`; integers are from 0 to 9;
  // booleans are random.
  std::vector<nn::Tensor> randomArguments(std::mt19937& generator,
                                          double scale = 1);
  // One filled buffer per argument, then one buffer per result.
  std::vector<AlignedBytes> makeBuffers(
      const std::vector<nn::Tensor>& arguments);
  // Runs a team's threads in turns, item by item. If the kernel has several
  // parts, runs the whole range of those before the last one.
  void run(std::vector<AlignedBytes>& buffers, int64_t begin, int64_t end) {
    run(buffers, begin, std::vector<int64_t>{end});
  }
  // The same for ranges that follow each other; the parts before run once.
  void run(std::vector<AlignedBytes>& buffers, int64_t begin,
           const std::vector<int64_t>& ends);
  // Returns the results after running the range in parts that end at these
  // fractions of it.
  std::vector<nn::Tensor> results(const std::vector<nn::Tensor>& arguments,
                                  const std::vector<double>& parts);

  // Describes the difference from the interpreter on random arguments, run in
  // one part and in three; empty if there is none. `prepare` may replace some
  // arguments.
  std::string difference(
      double absolute, double relative, double scale = 1,
      llvm::function_ref<void(std::vector<nn::Tensor>&)> prepare = nullptr);

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
  int file_ = -1;  // in memory, with the library
  using Entry = void (*)(void* const*, int64_t, int64_t, void*);
  void runPart(const KernelCode& code, Entry entry,
               const std::vector<void*>& pointers, int64_t begin, int64_t end);
  Entry find(const KernelCode& code);

  Entry entry_ = nullptr;
};

// Returns the PTX of function @k for a GPU and how it is launched. Empty, with
// diagnostics on stderr, on failure.
std::string ptxOf(const std::string& text, const std::string& chip,
                  PtxKernel& launch);
// The same for a kernel that may have several parts.
std::string ptxOf(const std::string& text, const std::string& chip,
                  llvm::SmallVectorImpl<PtxKernel>& launches);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_CODEGEN_FIXTURE_H_
