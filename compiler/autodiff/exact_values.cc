// Runs searches to a fixed point: for function results that update buffers or
// are statistics, and for arguments that are not exact at some call.
#include "compiler/autodiff/exact_values.h"

#include "dialects/nn/dialect.h"

namespace partita::autodiff {
namespace {

using mlir::Value;
using mlir::func::CallOp;
using mlir::func::FuncOp;

bool isExactInput(FuncOp main, mlir::BlockArgument argument) {
  if (!llvm::isa<mlir::FloatType>(
          mlir::getElementTypeOrSelf(argument.getType())))
    return true;
  auto kind = main.getArgAttrOfType<mlir::StringAttr>(argument.getArgNumber(),
                                                      nn::kKindAttr);
  return kind && llvm::is_contained({"buffer", "constant"}, kind.getValue());
}

}  // namespace

ExactValues::ExactValues(mlir::ModuleOp module) {
  const auto repeat = [&](const Places& places, auto search) {
    size_t before = 0;
    do {
      before = places.size();
      for (FuncOp function : module.getOps<FuncOp>())
        if (!function.isExternal()) search(function);
    } while (places.size() != before);
  };
  repeat(statistics_, [&](FuncOp function) { findUpdates(function); });
  repeat(statistics_, [&](FuncOp function) { findStatistics(function); });
  repeat(inexact_arguments_, [&](FuncOp function) { findArguments(function); });
}

bool ExactValues::containsResults(mlir::Operation* op) const {
  return llvm::all_of(op->getResults(),
                      [&](Value result) { return contains(result); });
}

// True if a value's only uses are results of @main that update buffers, or
// results of functions that are used so.
bool ExactValues::isUpdate(Value value) const {
  return !value.use_empty() &&
         llvm::all_of(value.getUses(), [&](mlir::OpOperand& use) {
           if (!llvm::isa<mlir::func::ReturnOp>(use.getOwner())) return false;
           auto function = use.getOwner()->getParentOfType<FuncOp>();
           const unsigned result = use.getOperandNumber();
           return function.getName() == "main"
                      ? function.getResultAttr(result, nn::kUpdatesAttr) !=
                            nullptr
                      : containsResult(function.getName(), result);
         });
}

// Single numbers only: larger updates (caches of keys and values) may be
// rounded.
void ExactValues::findUpdates(FuncOp function) {
  if (function.getName() == "main") return;
  llvm::SmallVector<CallOp> calls;
  for (FuncOp caller :
       function->getParentOfType<mlir::ModuleOp>().getOps<FuncOp>())
    for (CallOp call : caller.getOps<CallOp>())
      if (call.getCallee() == function.getName()) calls.push_back(call);
  if (calls.empty()) return;
  for (mlir::OpOperand& operand :
       function.front().getTerminator()->getOpOperands()) {
    auto type = llvm::dyn_cast<mlir::RankedTensorType>(operand.get().getType());
    const unsigned result = operand.getOperandNumber();
    if (!type || type.getRank() != 0 || !type.getElementType().isF32() ||
        !llvm::all_of(calls, [&](CallOp call) {
          return isUpdate(call.getResult(result));
        }))
      continue;
    statistics_.insert({function.getName().str(), result});
    if (!operand.get().getDefiningOp<CallOp>()) updates_.insert(operand.get());
  }
}

bool ExactValues::isStatistic(Value value) const {
  if (updates_.contains(value)) return true;
  auto found = llvm::dyn_cast<mlir::OpResult>(value);
  if (!found) return false;
  if (llvm::isa<nn::BatchNormOp>(found.getOwner()))
    return found.getResultNumber() > 0;
  auto call = llvm::dyn_cast<CallOp>(found.getOwner());
  return call && containsResult(call.getCallee(), found.getResultNumber());
}

void ExactValues::findStatistics(FuncOp function) {
  for (mlir::OpOperand& operand :
       function.front().getTerminator()->getOpOperands())
    if (isStatistic(operand.get()))
      statistics_.insert(
          {function.getName().str(), operand.getOperandNumber()});
}

void ExactValues::findArguments(FuncOp function) {
  const bool is_main = function.getName() == "main";
  for (mlir::BlockArgument value : function.getArguments()) {
    const bool exact =
        is_main ? isExactInput(function, value)
                : containsArgument(function.getName(), value.getArgNumber());
    if (exact)
      values_.insert(value);
    else
      values_.erase(value);
  }
  for (mlir::Operation& op : function.front()) {
    auto call = llvm::dyn_cast<CallOp>(op);
    const bool exact =
        !call && llvm::all_of(op.getOperands(),
                              [&](Value operand) { return contains(operand); });
    for (Value value : op.getResults())
      if (exact || isStatistic(value))
        values_.insert(value);
      else
        values_.erase(value);
    if (!call) continue;
    for (mlir::OpOperand& operand : call->getOpOperands())
      if (!contains(operand.get()))
        inexact_arguments_.insert(
            {call.getCallee().str(), operand.getOperandNumber()});
  }
}

}  // namespace partita::autodiff
