// Builds call graphs, and finds the values that stored tensors determine.
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

// True for collectives other than slices. If they ran at load time, a parameter
// that is divided to save memory would be stored whole.
bool movesData(mlir::Operation* op) {
  auto collective = mlir::dyn_cast<exec::CollectiveOp>(op);
  return collective && collective.getKind() != exec::CollectiveKind::kAllSlice;
}

}  // namespace

CallGraph::CallGraph(FuncOp root) {
  auto module = root->getParentOfType<mlir::ModuleOp>();
  const mlir::SymbolTable symbols(module);
  llvm::SetVector<FuncOp> callees_first;
  visit(root, symbols, callees_first);
  functions.insert(callees_first.rbegin(), callees_first.rend());
  // Count uses once: a model has one function per parameter update.
  const auto uses = mlir::SymbolTable::getSymbolUses(&module.getBodyRegion());
  if (!uses) return;
  for (const mlir::SymbolTable::SymbolUse& use : *uses)
    if (auto function = symbols.lookup<FuncOp>(
            use.getSymbolRef().getRootReference().getValue()))
      ++uses_[function];
}

void CallGraph::visit(FuncOp function, const mlir::SymbolTable& symbols,
                      llvm::SetVector<FuncOp>& finished) {
  function.walk([&](CallOp call) {
    auto callee = symbols.lookup<FuncOp>(call.getCallee());
    if (!callee || callee.isExternal()) return;
    calls[callee].push_back(call);
    if (calls[callee].size() == 1) visit(callee, symbols, finished);
  });
  finished.insert(function);
}

bool CallGraph::isOnlyCalled(FuncOp function) const {
  const auto found = calls.find(function);
  return function.isPrivate() && found != calls.end() &&
         uses_.lookup(function) == found->second.size();
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
  // States change from step to step, even where @main only reads them.
  if (kind && kind.getValue() == "state") return false;
  return main.getArgAttr(argument, nn::kSourceAttr) ||
         (kind &&
          (kind.getValue() == "derived" || kind.getValue() == "coordinate"));
}

StoredValues::StoredValues(FuncOp main, const CallGraph& graph) {
  // Tensors that a run updates are other ones in the next run.
  llvm::SmallDenseSet<mlir::Attribute> updated;
  for (unsigned i = 0; i < main.getNumResults(); ++i)
    if (mlir::Attribute name = main.getResultAttr(i, nn::kUpdatesAttr))
      updated.insert(name);
  for (mlir::BlockArgument argument : main.getArguments()) {
    const unsigned number = argument.getArgNumber();
    if (isStoredArgument(main, number) &&
        !updated.contains(main.getArgAttr(number, nn::kNameAttr)))
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
    // The body of a loop may move data, and the loop may never end.
    if (op.getNumRegions() > 0 || !mlir::isMemoryEffectFree(&op) ||
        movesData(&op) || mlir::isa<nn::LoopOp>(op))
      continue;
    if (llvm::all_of(op.getOperands(),
                     [&](Value operand) { return contains(operand); })) {
      stored_.insert(op.result_begin(), op.result_end());
    }
  }
}

}  // namespace partita::simplify
