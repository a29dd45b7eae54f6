// Makes every factor that can be divided the first of its dimension; see
// passes.td.
#include "compiler/sharding/passes.h"
#include "compiler/sharding/sink_reshapes.h"

namespace partita::sharding {

#define GEN_PASS_DEF_EXPOSEFACTORSPASS
#include "compiler/sharding/passes.h.inc"

namespace {

using mlir::func::FuncOp;

class ExposeFactorsPass
    : public impl::ExposeFactorsPassBase<ExposeFactorsPass> {
  void runOnOperation() override {
    for (FuncOp function : getOperation().getOps<FuncOp>()) {
      if (function.isExternal()) continue;
      const mlir::FailureOr<int64_t> count = sinkReshapes(function);
      if (failed(count)) return signalPassFailure();
      sunk += *count;
    }
  }
};

}  // namespace
}  // namespace partita::sharding
