// Replaces loops by calls that repeat; see passes.td.
#include "compiler/kernels/passes.h"
#include "dialects/exec/dialect.h"
#include "dialects/nn/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::kernels {

#define GEN_PASS_DEF_LOWERLOOPSPASS
#include "compiler/kernels/passes.h.inc"

namespace {

class LowerLoops : public impl::LowerLoopsPassBase<LowerLoops> {
 public:
  using LowerLoopsPassBase::LowerLoopsPassBase;

  void runOnOperation() override {
    getOperation().walk([&](nn::LoopOp loop) {
      mlir::OpBuilder builder(loop);
      auto call =
          mlir::func::CallOp::create(builder, loop.getLoc(), loop.getBodyAttr(),
                                     loop.getResultTypes(), loop.getOperands());
      call->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
      call->setAttr(exec::kRepeatsAttr, builder.getUnitAttr());
      loop.replaceAllUsesWith(call.getResults());
      loop.erase();
      ++loops;
    });
  }
};

}  // namespace
}  // namespace partita::kernels
