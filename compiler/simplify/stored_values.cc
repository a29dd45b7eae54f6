// Call graphs, and the values in them that stored tensors determine.
#include "compiler/simplify/stored_values.h"

#include "dialects/exec/dialect.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace partita::simplify {

using mlir::Value;
using mlir::func::CallOp;
using mlir::func::FuncOp;

namespace {

void visitCallees(FuncOp function, llvm::SetVector<FuncOp>& finished,
                  llvm::DenseMap<FuncOp, mlir::SmallVector<CallOp>>& calls) {
  function.walk([&](CallOp call) {
    auto callee = mlir::SymbolTable::lookupNearestSymbolFrom<FuncOp>(
        call, call.getCalleeAttr());
    if (!callee || callee.isExternal()) return;
    calls[callee].push_back(call);
    if (calls[callee].size() == 1) visitCallees(callee, finished, calls);
  });
  finished.insert(function);
}

// Gathered at load time, a parameter that is divided to save memory would stay
// whole.
bool movesData(mlir::Operation* op) {
  auto collective = mlir::dyn_cast<exec::CollectiveOp>(op);
  return collective && collective.getKind() != exec::CollectiveKind::all_slice;
}

}  // namespace

CallGraph::CallGraph(FuncOp root) {
  llvm::SetVector<FuncOp> callees_first;
  visitCallees(root, callees_first, calls);
  functions.insert(callees_first.rbegin(), callees_first.rend());
}

bool CallGraph::isOnlyCalled(FuncOp function) const {
  const auto found = calls.find(function);
  const auto uses =
      mlir::SymbolTable::getSymbolUses(function, function->getParentOp());
  if (!function.isPrivate() || found == calls.end() || !uses) return false;
  return static_cast<size_t>(llvm::range_size(*uses)) == found->second.size();
}

void eraseDeadOperations(FuncOp function) {
  for (mlir::Operation& op :
       llvm::make_early_inc_range(llvm::reverse(function.front()))) {
    if (mlir::isOpTriviallyDead(&op)) op.erase();
  }
}

bool isStoredArgument(FuncOp main, unsigned argument) {
  const auto kind =
      main.getArgAttrOfType<mlir::StringAttr>(argument, nn::kKindAttr);
  return main.getArgAttr(argument, nn::kSourceAttr) ||
         (kind &&
          (kind.getValue() == "derived" || kind.getValue() == "coordinate"));
}

StoredValues::StoredValues(FuncOp main, const CallGraph& graph) {
  for (mlir::BlockArgument argument : main.getArguments()) {
    if (isStoredArgument(main, argument.getArgNumber()))
      stored_.insert(argument);
  }
  for (FuncOp function : graph.functions) {
    const auto calls = graph.calls.find(function);
    if (graph.isOnlyCalled(function)) {
      for (mlir::BlockArgument argument : function.getArguments()) {
        const auto is_stored = [&](CallOp call) {
          return contains(call.getOperand(argument.getArgNumber()));
        };
        if (llvm::all_of(calls->second, is_stored)) stored_.insert(argument);
      }
    }
    visit(function);
  }
}

void StoredValues::visit(FuncOp function) {
  for (mlir::Operation& op : function.front()) {
    if (op.getNumRegions() > 0 || !mlir::isMemoryEffectFree(&op) ||
        movesData(&op))
      continue;
    if (llvm::all_of(op.getOperands(),
                     [&](Value operand) { return contains(operand); })) {
      stored_.insert(op.result_begin(), op.result_end());
    }
  }
}

}  // namespace partita::simplify
