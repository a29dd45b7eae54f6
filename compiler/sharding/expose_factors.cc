// Makes every divisible factor the first factor of its dimension; see
// passes.td.
#include "compiler/sharding/hoist_slices.h"
#include "compiler/sharding/passes.h"
#include "compiler/sharding/sink_reshapes.h"
#include "compiler/sharding/view_parameters.h"

namespace partita::sharding {

#define GEN_PASS_DEF_EXPOSEFACTORSPASS
#include "compiler/sharding/passes.h.inc"

namespace {

using mlir::func::FuncOp;

class ExposeFactorsPass
    : public impl::ExposeFactorsPassBase<ExposeFactorsPass> {
  void runOnOperation() override {
    const Callers callers(getOperation());
    llvm::DenseSet<mlir::Operation*> views;
    for (FuncOp function : getOperation().getOps<FuncOp>()) {
      if (function.isExternal()) continue;
      // Sink reshapes first, so that no reshape separates slices from products.
      const mlir::FailureOr<int64_t> count = sinkReshapes(function);
      if (failed(count)) return signalPassFailure();
      sunk += *count;
      hoisted += hoistSlices(
          function,
          [&](mlir::BlockArgument argument) {
            return callers.isStored(argument);
          },
          views);
      eraseDead(function, views);
    }
    viewed += viewParameters(getOperation(), views);
  }

  // Erases the operations that the copies replaced.
  static void eraseDead(FuncOp function,
                        llvm::DenseSet<mlir::Operation*>& views) {
    for (mlir::Operation& op :
         llvm::make_early_inc_range(llvm::reverse(function.front())))
      if (mlir::isOpTriviallyDead(&op)) {
        views.erase(&op);
        op.erase();
      }
  }
};

}  // namespace
}  // namespace partita::sharding
