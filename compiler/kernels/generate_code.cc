// All kernels into one code module, and their ranges onto the launches.
#include "compiler/kernels/generate_code.h"

#include "compiler/kernels/codegen.h"
#include "dialects/exec/dialect.h"
#include "llvm/ADT/StringMap.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::kernels {

mlir::FailureOr<std::string> generateCode(mlir::ModuleOp module,
                                          const ObjectOptions& options) {
  mlir::OwningOpRef<mlir::ModuleOp> code =
      mlir::ModuleOp::create(module.getLoc(), "kernels");
  llvm::StringMap<KernelCode> kernels;
  for (auto kernel : module.getOps<mlir::func::FuncOp>()) {
    if (!kernel->hasAttr(exec::kKernelAttr)) continue;
    mlir::FailureOr<KernelCode> generated = generateKernel(kernel, *code);
    if (mlir::failed(generated)) return mlir::failure();
    kernels[kernel.getName()] = *generated;
  }
  if (kernels.empty()) return std::string();
  module.walk([&](exec::LaunchOp launch) {
    const KernelCode& kernel = kernels[launch.getKernel()];
    launch.setRange(kernel.range);
    launch.setGrain(kernel.grain);
    launch.setScratch(kernel.scratch_bytes);
  });
  return compileToObject(*code, options);
}

}  // namespace partita::kernels
