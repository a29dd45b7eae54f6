// Outlines layers to functions, as simplifying does, drops calls, and inlines
// the functions again.
#include "compiler/driver/verify/shrink_model.h"

#include "compiler/pipeline/work.h"
#include "compiler/simplify/passes.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/PassManager.h"

namespace partita::driver {
namespace {

using mlir::Operation;
using mlir::Value;
using mlir::func::CallOp;
using mlir::func::FuncOp;

// Inlines the calls to `functions` in `main`, and erases the functions.
void writeOut(FuncOp main, llvm::ArrayRef<FuncOp> functions) {
  for (auto call : llvm::make_early_inc_range(main.getOps<CallOp>())) {
    auto callee = mlir::SymbolTable::lookupNearestSymbolFrom<FuncOp>(
        call, call.getCalleeAttr());
    if (!llvm::is_contained(functions, callee)) continue;
    mlir::IRMapping map;
    map.map(callee.getArguments(), call.getOperands());
    mlir::OpBuilder builder(call);
    for (Operation& op : callee.front().without_terminator())
      builder.clone(op, map);
    for (auto [result, value] : llvm::zip_equal(
             call.getResults(), callee.front().getTerminator()->getOperands()))
      result.replaceAllUsesWith(map.lookupOrDefault(value));
    call.erase();
  }
  for (FuncOp function : functions) function.erase();
}

bool feeds(CallOp from, CallOp to) {
  return llvm::any_of(to.getOperands(), [&](Value operand) {
    return operand.getDefiningOp() == from.getOperation();
  });
}

// The name of an argument; empty for a computed value.
llvm::StringRef nameOf(FuncOp main, Value value) {
  auto argument = llvm::dyn_cast<mlir::BlockArgument>(value);
  auto name = argument ? main.getArgAttrOfType<mlir::StringAttr>(
                             argument.getArgNumber(), nn::kNameAttr)
                       : mlir::StringAttr();
  return name ? name.getValue() : llvm::StringRef();
}

bool areAlike(FuncOp main, CallOp a, CallOp b, const Alike& alike) {
  return llvm::all_of(llvm::zip_equal(a.getOperands(), b.getOperands()),
                      [&](const auto& pair) {
                        return alike(nameOf(main, std::get<0>(pair)),
                                     nameOf(main, std::get<1>(pair)));
                      });
}

FuncOp mostCalled(FuncOp main, llvm::ArrayRef<FuncOp> functions) {
  const auto callsOf = [&](FuncOp function) {
    return llvm::count_if(main.getOps<CallOp>(), [&](CallOp call) {
      return call.getCallee() == function.getName();
    });
  };
  return *llvm::max_element(
      functions, [&](FuncOp a, FuncOp b) { return callsOf(a) < callsOf(b); });
}

int64_t dropCalls(FuncOp main, llvm::ArrayRef<FuncOp> functions, int64_t keep,
                  const Alike& alike) {
  int64_t dropped = 0;
  for (FuncOp function : functions) {
    int64_t kept = 0;
    CallOp last;
    for (auto call : llvm::make_early_inc_range(main.getOps<CallOp>())) {
      if (call.getCallee() != function.getName()) continue;
      if (kept < keep || !feeds(last, call) ||
          !areAlike(main, last, call, alike)) {
        ++kept;
        last = call;
        continue;
      }
      call.replaceAllUsesWith(last.getResults());
      call.erase();
      ++dropped;
    }
  }
  return dropped;
}

}  // namespace

int64_t workOf(mlir::ModuleOp module) {
  auto main = module.lookupSymbol<FuncOp>("main");
  return main ? pipeline::Work().of(main) : 0;
}

mlir::FailureOr<int64_t> dropRepeatedLayers(mlir::ModuleOp module, int64_t keep,
                                            const Alike& alike, Kinds kinds) {
  llvm::StringSet<> before;
  for (FuncOp function : module.getOps<FuncOp>())
    before.insert(function.getName());
  mlir::PassManager passes(module.getContext());
  passes.addPass(simplify::createOutlineLayersPass());
  if (mlir::failed(passes.run(module))) return mlir::failure();
  auto main = module.lookupSymbol<FuncOp>("main");
  llvm::SmallVector<FuncOp> layers, made;
  for (FuncOp function : module.getOps<FuncOp>()) {
    if (function == main) continue;
    layers.push_back(function);
    if (!before.contains(function.getName())) made.push_back(function);
  }
  llvm::SmallVector<FuncOp> dropping = layers;
  if (kinds == Kinds::kMostCalled && !layers.empty())
    dropping = {mostCalled(main, layers)};
  const int64_t dropped = dropCalls(main, dropping, keep, alike);
  writeOut(main, made);
  return dropped;
}

}  // namespace partita::driver
