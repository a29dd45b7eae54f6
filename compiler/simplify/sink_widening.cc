// Moves the widening of integers of 8 bits from calls into the functions that
// they call; see passes.td.
#include "compiler/simplify/passes.h"
#include "compiler/simplify/view.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"

namespace partita::simplify {

#define GEN_PASS_DEF_SINKWIDENINGPASS
#include "compiler/simplify/passes.h.inc"

namespace {

using mlir::Operation;
using mlir::SmallVector;
using mlir::Value;
using mlir::func::CallOp;
using mlir::func::FuncOp;
namespace arith = mlir::arith;

// The operations that make `value` from an i8, the first one first; empty if
// there is no such i8.
SmallVector<Operation*> wideningOf(Value value) {
  SmallVector<Operation*> chain;
  while (mlir::isa<mlir::RankedTensorType>(value.getType())) {
    if (tensorType(value).getElementType().isInteger(8)) {
      std::reverse(chain.begin(), chain.end());
      return chain;
    }
    Operation* op = value.getDefiningOp();
    if (!mlir::isa_and_present<arith::ExtSIOp, arith::ExtUIOp, arith::SIToFPOp,
                               arith::UIToFPOp>(op))
      return {};
    chain.push_back(op);
    value = op->getOperand(0);
  }
  return {};
}

bool areAlike(mlir::ArrayRef<Operation*> a, mlir::ArrayRef<Operation*> b) {
  return llvm::equal(a, b, [](Operation* x, Operation* y) {
    return x->getName() == y->getName() &&
           x->getResultTypes() == y->getResultTypes();
  });
}

class SinkWideningPass : public impl::SinkWideningPassBase<SinkWideningPass> {
  void runOnOperation() override {
    mlir::SymbolTableCollection symbols;
    const mlir::SymbolUserMap users(symbols, getOperation());
    bool has_changed = true;
    while (has_changed) {
      has_changed = false;
      for (auto function : getOperation().getOps<FuncOp>()) {
        SmallVector<CallOp> calls;
        for (Operation* user : users.getUsers(function))
          calls.push_back(mlir::dyn_cast<CallOp>(user));
        // Loops and others take functions as they are.
        if (!function.isPrivate() || function.isExternal() || calls.empty() ||
            llvm::is_contained(calls, CallOp()))
          continue;
        for (unsigned i = 0; i < function.getNumArguments(); ++i)
          has_changed |= sink(function, i, calls);
      }
    }
  }

  bool sink(FuncOp function, unsigned number, mlir::ArrayRef<CallOp> calls) {
    CallOp first = calls.front();
    const SmallVector<Operation*> chain = wideningOf(first.getOperand(number));
    if (chain.empty()) return false;
    for (CallOp call : calls)
      if (!areAlike(chain, wideningOf(call.getOperand(number)))) return false;
    mlir::BlockArgument argument = function.getArgument(number);
    mlir::OpBuilder builder(function.getContext());
    builder.setInsertionPointToStart(&function.front());
    mlir::IRMapping mapping;
    const Value narrow = chain.front()->getOperand(0);
    mapping.map(narrow, argument);
    SmallVector<Operation*> inside;
    for (Operation* op : chain) inside.push_back(builder.clone(*op, mapping));
    argument.replaceUsesWithIf(
        inside.back()->getResult(0), [&](mlir::OpOperand& use) {
          return !llvm::is_contained(inside, use.getOwner());
        });
    argument.setType(narrow.getType());
    function.setType(
        builder.getFunctionType(function.front().getArgumentTypes(),
                                function.getFunctionType().getResults()));
    for (CallOp call : calls)
      call.setOperand(
          number, wideningOf(call.getOperand(number)).front()->getOperand(0));
    ++sunk;
    return true;
  }
};

}  // namespace
}  // namespace partita::simplify
