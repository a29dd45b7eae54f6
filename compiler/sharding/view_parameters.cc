// Arguments connected by calls change together or not at all.
#include "compiler/sharding/view_parameters.h"

#include "compiler/sharding/parameter_views.h"
#include "dialects/dist/dialect.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/IR/SymbolTable.h"

namespace partita::sharding {
namespace {

using llvm::SmallVector;
using mlir::BlockArgument;
using mlir::Operation;
using mlir::Value;
using mlir::func::CallOp;
using mlir::func::FuncOp;

FuncOp functionOf(BlockArgument argument) {
  return mlir::cast<FuncOp>(argument.getOwner()->getParentOp());
}

// Returns the argument of the callee that receives this operand of a call.
BlockArgument calleeArgument(mlir::OpOperand& use) {
  auto call = mlir::cast<CallOp>(use.getOwner());
  auto callee = mlir::SymbolTable::lookupNearestSymbolFrom<FuncOp>(
      call, call.getCalleeAttr());
  return callee.getArgument(use.getOperandNumber());
}

// The arguments that change, and their new types.
class Views {
 public:
  Views(mlir::ModuleOp module, const llvm::DenseSet<Operation*>& views)
      : callers_(module), views_(views) {
    for (FuncOp function : module.getOps<FuncOp>()) {
      if (function.isExternal()) continue;
      for (BlockArgument argument : function.getArguments())
        if (mlir::Type type = viewedType(argument)) types_[argument] = type;
    }
    while (dropInconsistent()) {
    }
  }

  const llvm::MapVector<Value, mlir::Type>& types() const { return types_; }

 private:
  // Returns the single type that reshapes give the argument, here and in
  // functions it is passed to; null if there is any other use.
  mlir::Type viewedType(BlockArgument argument) {
    // Annotations refer to the existing shape.
    if (functionOf(argument).getArgAttr(argument.getArgNumber(),
                                        dist::kShardingAttr))
      return {};
    mlir::Type type;
    for (mlir::OpOperand& use : argument.getUses()) {
      mlir::Type other;
      if (views_.contains(use.getOwner()))
        other = use.getOwner()->getResult(0).getType();
      else if (mlir::isa<CallOp>(use.getOwner()))
        other = viewedType(calleeArgument(use));
      if (!other || (type && other != type)) return {};
      type = other;
    }
    return type;
  }

  // An argument of a function changes only if all operands passed to it do.
  bool dropInconsistent() {
    const size_t before = types_.size();
    types_.remove_if([&](auto& entry) {
      auto argument = mlir::cast<BlockArgument>(entry.first);
      if (!callers_.isStored(argument)) return true;
      auto agrees = [&](Value value) {
        auto found = types_.find(value);
        return found != types_.end() && found->second == entry.second;
      };
      if (!llvm::all_of(callers_.valuesOf(argument), agrees)) return true;
      return llvm::any_of(argument.getUses(), [&](mlir::OpOperand& use) {
        return mlir::isa<CallOp>(use.getOwner()) &&
               !agrees(calleeArgument(use));
      });
    });
    return types_.size() != before;
  }

  Callers callers_;
  const llvm::DenseSet<Operation*>& views_;
  llvm::MapVector<Value, mlir::Type> types_;
};

}  // namespace

Callers::Callers(mlir::ModuleOp module) {
  module.walk([&](CallOp call) {
    if (auto callee = module.lookupSymbol<FuncOp>(call.getCallee()))
      calls_[callee].push_back(call);
  });
  for (FuncOp function : module.getOps<FuncOp>()) {
    auto uses = mlir::SymbolTable::getSymbolUses(function, module);
    if (!function.isPrivate() || !uses ||
        !llvm::all_of(*uses, [](const mlir::SymbolTable::SymbolUse& use) {
          return mlir::isa<CallOp>(use.getUser());
        }))
      calls_.erase(function);
  }
}

SmallVector<Value> Callers::valuesOf(BlockArgument argument) const {
  SmallVector<Value> values;
  auto found = calls_.find(functionOf(argument));
  if (found == calls_.end()) return values;
  for (CallOp call : found->second)
    values.push_back(call->getOperand(argument.getArgNumber()));
  return values;
}

bool Callers::isStored(BlockArgument argument) const {
  FuncOp function = functionOf(argument);
  if (function.getArgAttr(argument.getArgNumber(), nn::kSourceAttr))
    return true;
  const SmallVector<Value> values = valuesOf(argument);
  return !values.empty() && llvm::all_of(values, [&](Value value) {
    auto source = mlir::dyn_cast<BlockArgument>(value);
    return source && isStored(source);
  });
}

int64_t viewParameters(mlir::ModuleOp module,
                       const llvm::DenseSet<Operation*>& views) {
  Views found(module, views);
  llvm::SetVector<FuncOp> functions;
  int64_t count = 0;
  for (auto& [value, type] : found.types()) {
    auto argument = mlir::cast<BlockArgument>(value);
    FuncOp function = functionOf(argument);
    for (Operation* user : llvm::make_early_inc_range(argument.getUsers())) {
      if (!mlir::isa<nn::ReshapeOp>(user)) continue;
      user->getResult(0).replaceAllUsesWith(argument);
      user->erase();
    }
    if (function.isPublic() &&
        !function.getArgAttr(argument.getArgNumber(), nn::kViewOfAttr))
      function.setArgAttr(argument.getArgNumber(), nn::kViewOfAttr,
                          mlir::TypeAttr::get(argument.getType()));
    argument.setType(type);
    functions.insert(function);
    count += function.isPublic();
  }
  for (FuncOp function : functions)
    function.setType(mlir::FunctionType::get(
        function.getContext(), function.front().getArgumentTypes(),
        function.getResultTypes()));
  return count;
}

}  // namespace partita::sharding
