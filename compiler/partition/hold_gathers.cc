// Gathers parameters once per step; see passes.td.
#include "compiler/partition/passes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/CSE.h"

namespace partita::partition {

#define GEN_PASS_DEF_HOLDGATHERSPASS
#include "compiler/partition/passes.h.inc"

namespace {

using mlir::BlockArgument;
using mlir::Operation;
using mlir::Value;
using mlir::func::CallOp;
using mlir::func::FuncOp;

bool isParameter(Value value) {
  auto argument = llvm::dyn_cast<BlockArgument>(value);
  if (!argument) return false;
  auto function = llvm::cast<FuncOp>(argument.getOwner()->getParentOp());
  auto kind = function.getArgAttrOfType<mlir::StringAttr>(
      argument.getArgNumber(), nn::kKindAttr);
  return kind && kind.getValue() == "parameter";
}

// True if an operation depends only on values that satisfy `is_given` and on
// constants.
bool dependsOnlyOn(Operation* op, llvm::function_ref<bool(Value)> is_given) {
  return op->getNumRegions() == 0 && mlir::isMemoryEffectFree(op) &&
         llvm::all_of(op->getOperands(), [&](Value operand) {
           Operation* producer = operand.getDefiningOp();
           return producer ? dependsOnlyOn(producer, is_given)
                           : is_given(operand);
         });
}

// A function that only @main calls.
class Layer {
 public:
  Layer(FuncOp function, llvm::ArrayRef<CallOp> calls)
      : function_(function), calls_(calls) {}

  // Returns the number of gathers moved to the calls.
  int64_t run() {
    for (BlockArgument argument : function_.getArguments())
      if (llvm::all_of(calls_, [&](CallOp call) {
            return isParameter(call.getOperand(argument.getArgNumber()));
          }))
        parameters_.insert(argument);
    int64_t moved = 0;
    while (dist::AllGatherOp gather = lastGather()) {
      expose(gather);
      ++moved;
    }
    return moved;
  }

 private:
  // Gathers of its operand, along other axes, move with it.
  dist::AllGatherOp lastGather() {
    for (Operation& op : llvm::reverse(function_.front()))
      if (auto gather = llvm::dyn_cast<dist::AllGatherOp>(op);
          gather && isOfParameters(gather))
        return gather;
    return {};
  }

  bool isOfParameters(Operation* op) const {
    return dependsOnlyOn(
        op, [&](Value value) { return parameters_.contains(value); });
  }

  static void collect(Operation* op, llvm::SetVector<Operation*>& slice) {
    for (Value operand : op->getOperands())
      if (Operation* producer = operand.getDefiningOp())
        collect(producer, slice);
    slice.insert(op);
  }

  void expose(dist::AllGatherOp gather) {
    llvm::SetVector<Operation*> slice;  // in program order
    collect(gather, slice);
    for (CallOp call : calls_) {
      mlir::OpBuilder builder(call);
      mlir::IRMapping values;
      for (BlockArgument argument : function_.getArguments())
        if (parameters_.contains(argument))
          values.map(argument, call.getOperand(argument.getArgNumber()));
      for (Operation* op : slice) builder.clone(*op, values);
      call.getOperandsMutable().append(values.lookup(gather.getResult()));
    }
    const unsigned index = function_.getNumArguments();
    (void)function_.insertArgument(index, gather.getResult().getType(), nullptr,
                                   gather.getLoc());
    gather.getResult().replaceAllUsesWith(function_.getArgument(index));
    for (Operation* op : llvm::reverse(slice))
      if (op->use_empty()) op->erase();
  }

  FuncOp function_;
  const llvm::ArrayRef<CallOp> calls_;
  llvm::SmallPtrSet<Value, 32> parameters_;
};

// Merges equal gathers of parameters, whatever their reasons, into the first.
void joinGathers(FuncOp function) {
  mlir::IRRewriter rewriter(function.getContext());
  mlir::DominanceInfo dominance(function);
  mlir::eliminateCommonSubExpressions(rewriter, dominance, function);
  using Key = std::tuple<Value, mlir::Attribute, int64_t, mlir::Type>;
  llvm::DenseMap<Key, Value> known;
  for (auto gather :
       llvm::make_early_inc_range(function.getOps<dist::AllGatherOp>())) {
    if (!dependsOnlyOn(gather, isParameter)) continue;
    const Key key(gather.getInput(), gather.getAxesAttr(),
                  static_cast<int64_t>(gather.getDim()), gather.getType());
    const auto [first, is_new] = known.try_emplace(key, gather.getResult());
    if (is_new) continue;
    gather.getResult().replaceAllUsesWith(first->second);
    gather.erase();
  }
}

class HoldGathers : public impl::HoldGathersPassBase<HoldGathers> {
 public:
  void runOnOperation() override {
    FuncOp main = getOperation().lookupSymbol<FuncOp>("main");
    if (!main) return;
    mlir::SymbolTable symbols(getOperation());
    llvm::MapVector<Operation*, llvm::SmallVector<CallOp>> calls;
    llvm::SmallPtrSet<Operation*, 16> called_elsewhere;
    getOperation().walk([&](CallOp call) {
      FuncOp callee = symbols.lookup<FuncOp>(call.getCallee());
      if (!callee) return;
      calls[callee].push_back(call);
      if (call->getParentOp() != main) called_elsewhere.insert(callee);
    });
    for (auto& [callee, sites] : calls)
      if (!called_elsewhere.contains(callee))
        gathers += Layer(llvm::cast<FuncOp>(callee), sites).run();
    joinGathers(main);
  }
};

}  // namespace
}  // namespace partita::partition
