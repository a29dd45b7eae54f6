// Removes unused arguments and results of layer functions; see passes.td.
#include "compiler/simplify/passes.h"
#include "compiler/simplify/stored_values.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::simplify {

#define GEN_PASS_DEF_REMOVEDEADARGUMENTSPASS
#include "compiler/simplify/passes.h.inc"

namespace {

using mlir::Value;
using mlir::func::CallOp;
using mlir::func::FuncOp;

// A private function and its calls, which are all its uses.
class Narrowing {
 public:
  Narrowing(FuncOp function, llvm::MutableArrayRef<CallOp> calls)
      : function_(function), calls_(calls) {}

  // Returns the number of results dropped.
  mlir::FailureOr<int64_t> dropResults() {
    auto terminator =
        mlir::cast<mlir::func::ReturnOp>(function_.front().getTerminator());
    llvm::BitVector dropped(function_.getNumResults());
    for (unsigned index = 0; index < dropped.size(); ++index) {
      if (auto argument = mlir::dyn_cast<mlir::BlockArgument>(
              terminator.getOperand(index))) {
        for (CallOp call : calls_)
          call.getResult(index).replaceAllUsesWith(
              call.getOperand(argument.getArgNumber()));
      }
      if (llvm::all_of(calls_, [&](CallOp call) {
            return call.getResult(index).use_empty();
          }))
        dropped.set(index);
    }
    if (dropped.none()) return 0;
    terminator->eraseOperands(dropped);
    if (failed(function_.eraseResults(dropped))) return mlir::failure();
    for (CallOp& call : calls_) call = withoutResults(call, dropped);
    eraseDeadOperations(function_);
    return dropped.count();
  }

  // Returns the number of arguments dropped.
  mlir::FailureOr<int64_t> dropArguments() {
    eraseDeadOperations(function_);
    llvm::BitVector dropped(function_.getNumArguments());
    for (mlir::BlockArgument argument : function_.getArguments()) {
      if (argument.use_empty()) dropped.set(argument.getArgNumber());
    }
    if (dropped.none()) return 0;
    if (failed(function_.eraseArguments(dropped))) return mlir::failure();
    for (CallOp call : calls_) call->eraseOperands(dropped);
    return dropped.count();
  }

 private:
  CallOp withoutResults(CallOp call, const llvm::BitVector& dropped) {
    mlir::OpBuilder builder(call);
    auto narrow =
        CallOp::create(builder, call.getLoc(), function_, call.getOperands());
    for (mlir::NamedAttribute attribute : call->getDiscardableAttrs())
      if (attribute.getName() != "nn.dims")  // of the previous results
        narrow->setAttr(attribute.getName(), attribute.getValue());
    auto next = narrow.result_begin();
    for (auto [index, result] : llvm::enumerate(call.getResults())) {
      if (!dropped.test(index)) result.replaceAllUsesWith(*next++);
    }
    call.erase();
    return narrow;
  }

  FuncOp function_;
  llvm::MutableArrayRef<CallOp> calls_;
};

class RemoveDeadArgumentsPass
    : public impl::RemoveDeadArgumentsPassBase<RemoveDeadArgumentsPass> {
  void runOnOperation() override {
    auto main = getOperation().lookupSymbol<FuncOp>("main");
    if (!main || main.isExternal()) {
      getOperation().emitError(
          "expected a function @main with a body, found none");
      return signalPassFailure();
    }
    CallGraph graph(main);
    // Results from callers to callees, then arguments from callees to callers.
    for (FuncOp function : graph.functions) {
      if (failed(narrow(graph, function, results, &Narrowing::dropResults)))
        return signalPassFailure();
    }
    for (FuncOp function : llvm::reverse(graph.functions)) {
      if (failed(narrow(graph, function, arguments, &Narrowing::dropArguments)))
        return signalPassFailure();
    }
  }

  static mlir::LogicalResult narrow(
      CallGraph& graph, FuncOp function, Statistic& total,
      mlir::FailureOr<int64_t> (Narrowing::*drop)()) {
    if (!graph.isOnlyCalled(function)) return mlir::success();
    Narrowing narrowing(function, graph.calls[function]);
    const mlir::FailureOr<int64_t> count = (narrowing.*drop)();
    if (failed(count)) return mlir::failure();
    total += *count;
    return mlir::success();
  }
};

}  // namespace
}  // namespace partita::simplify
