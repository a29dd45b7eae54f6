// Writes the work of kernels' bodies onto their launches; see passes.td.
#include "compiler/kernels/kernel_work.h"
#include "compiler/kernels/passes.h"
#include "dialects/exec/dialect.h"
#include "llvm/ADT/StringMap.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::kernels {

#define GEN_PASS_DEF_COUNTWORKPASS
#include "compiler/kernels/passes.h.inc"

namespace {

using mlir::func::FuncOp;

class CountWork : public impl::CountWorkPassBase<CountWork> {
 public:
  using CountWorkPassBase::CountWorkPassBase;

  void runOnOperation() override {
    llvm::StringMap<KernelWork> works;
    for (FuncOp function : getOperation().getOps<FuncOp>())
      if (function->hasAttr(exec::kKernelAttr) && !function.isExternal())
        works[function.getName()] = workOf(function);
    getOperation().walk([&](exec::LaunchOp launch) {
      if (auto found = works.find(launch.getKernel()); found != works.end())
        setWork(launch, found->second);
    });
  }
};

}  // namespace
}  // namespace partita::kernels
