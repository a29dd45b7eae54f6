// Counts from @main downwards, call by call.
#include "compiler/partition/run_counts.h"

#include "dialects/nn/dialect.h"

namespace partita::partition {

using mlir::func::CallOp;
using mlir::func::FuncOp;

namespace {

void addRuns(FuncOp function, llvm::MapVector<FuncOp, int64_t>& runs) {
  ++runs[function];
  for (auto call : function.getOps<CallOp>())
    if (auto callee = mlir::SymbolTable::lookupNearestSymbolFrom<FuncOp>(
            call, call.getCalleeAttr()))
      addRuns(callee, runs);
  // The number of iterations is unknown: one.
  for (auto loop : function.getOps<nn::LoopOp>())
    if (auto body = mlir::SymbolTable::lookupNearestSymbolFrom<FuncOp>(
            loop, loop.getBodyAttr()))
      addRuns(body, runs);
}

}  // namespace

llvm::MapVector<FuncOp, int64_t> countRuns(mlir::ModuleOp module) {
  llvm::MapVector<FuncOp, int64_t> runs;
  if (auto main = module.lookupSymbol<FuncOp>("main")) addRuns(main, runs);
  return runs;
}

}  // namespace partita::partition
