// Marks values from arguments to results, and from calls to functions, until
// nothing changes: layers may get slices of stacked parameters.
#include "compiler/sharding/stored_values.h"

#include "dialects/nn/weight_mark.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::sharding {

using mlir::BlockArgument;
using mlir::Operation;
using mlir::Value;
using mlir::func::FuncOp;

StoredValues::StoredValues(mlir::ModuleOp module) : callers_(module) {
  for (bool changed = true; changed;) {
    changed = false;
    for (FuncOp function : module.getOps<FuncOp>())
      if (!function.isExternal()) changed |= addValues(function);
  }
}

bool StoredValues::addValues(FuncOp function) {
  const size_t before = stored_.size();
  for (BlockArgument argument : function.getArguments())
    if (isStored(argument)) stored_.insert(argument);
  for (Operation& op : function.front())
    if (mlir::isMemoryEffectFree(&op) && op.getNumRegions() == 0 &&
        !op.hasTrait<mlir::OpTrait::IsTerminator>() &&
        llvm::all_of(op.getOperands(),
                     [&](Value operand) { return contains(operand); }))
      stored_.insert(op.result_begin(), op.result_end());
  return stored_.size() > before;
}

bool StoredValues::isStored(BlockArgument argument) const {
  auto function = mlir::cast<FuncOp>(argument.getOwner()->getParentOp());
  if (callers_.isStored(argument) ||
      function.getArgAttr(argument.getArgNumber(), nn::kWeightAttr))
    return true;
  const auto values = callers_.valuesOf(argument);
  return !values.empty() &&
         llvm::all_of(values, [&](Value value) { return contains(value); });
}

bool StoredValues::isKernelGradient(nn::ConvOp op) const {
  return isActivation(op.getWeight());
}

bool StoredValues::isActivation(Value value) const {
  if (contains(value)) return false;
  while (Operation* op = value.getDefiningOp()) {
    if (!mlir::isa<nn::TransposeOp, nn::ReshapeOp, nn::BroadcastOp>(op))
      return true;
    value = op->getOperand(0);
  }
  const auto values = callers_.valuesOf(mlir::cast<BlockArgument>(value));
  return llvm::any_of(values, [&](Value outer) { return isActivation(outer); });
}

}  // namespace partita::sharding
