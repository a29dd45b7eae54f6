// All kernels into one code module, and how they run onto the launches.
#include "compiler/kernels/generate_code.h"

#include "compiler/kernels/codegen.h"
#include "dialects/exec/dialect.h"
#include "llvm/ADT/StringMap.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::kernels {
namespace {

using namespace mlir;

// Appends all kernels to `code`.
FailureOr<SmallVector<KernelCode>> generateKernels(
    ModuleOp module, ModuleOp code, const CodegenOptions& options) {
  SmallVector<KernelCode> kernels;
  for (auto kernel : module.getOps<func::FuncOp>()) {
    if (!kernel->hasAttr(exec::kKernelAttr)) continue;
    FailureOr<KernelCode> generated = generateKernel(kernel, code, options);
    if (failed(generated)) return failure();
    kernels.push_back(*generated);
  }
  return kernels;
}

OwningOpRef<ModuleOp> makeCodeModule(ModuleOp module) {
  return ModuleOp::create(module.getLoc(), "kernels");
}

}  // namespace

FailureOr<std::string> generateObject(ModuleOp module,
                                      const ObjectOptions& options) {
  OwningOpRef<ModuleOp> code = makeCodeModule(module);
  FailureOr<SmallVector<KernelCode>> kernels =
      generateKernels(module, *code, hostCodegenOptions());
  if (failed(kernels)) return failure();
  if (kernels->empty()) return std::string();
  llvm::StringMap<KernelCode> by_name;
  for (const KernelCode& kernel : *kernels) by_name[kernel.symbol] = kernel;
  module.walk([&](exec::LaunchOp launch) {
    const KernelCode& kernel = by_name[launch.getKernel()];
    launch.setRange(kernel.range);
    launch.setGrain(kernel.grain);
    launch.setScratch(kernel.scratch_bytes);
  });
  return compileToObject(*code, options);
}

FailureOr<std::string> generatePtx(ModuleOp module, const PtxOptions& options) {
  OwningOpRef<ModuleOp> code = makeCodeModule(module);
  FailureOr<SmallVector<KernelCode>> kernels =
      generateKernels(module, *code, ptxCodegenOptions());
  if (failed(kernels)) return failure();
  if (kernels->empty()) return std::string();
  SmallVector<PtxKernel> launches;
  FailureOr<std::string> ptx = compileToPtx(*code, *kernels, options, launches);
  if (failed(ptx)) return failure();
  llvm::StringMap<PtxKernel> by_name;
  for (const PtxKernel& kernel : launches) by_name[kernel.symbol] = kernel;
  module.walk([&](exec::LaunchOp launch) {
    const PtxKernel& kernel = by_name[launch.getKernel()];
    launch.setBlocks(kernel.blocks);
    launch.setThreads(kBlock);
    launch.setScratch(kernel.scratch_bytes);
  });
  return ptx;
}

}  // namespace partita::kernels
