// Moves gathers of parameters to call sites; see passes.td.
#include "compiler/memory/passes.h"
#include "dialects/exec/dialect.h"
#include "dialects/exec/entries.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"

namespace partita::memory {

#define GEN_PASS_DEF_EXPOSEGATHERSPASS
#include "compiler/memory/passes.h.inc"

namespace {

// Argument attribute of the nn dialect.
constexpr char kKindAttr[] = "nn.kind";

using exec::CollectiveOp;
using mlir::Operation;
using mlir::Value;
using mlir::func::CallOp;
using mlir::func::FuncOp;

bool isParameter(Value value) {
  auto argument = llvm::dyn_cast<mlir::BlockArgument>(value);
  if (!argument) return false;
  auto function = llvm::cast<FuncOp>(argument.getOwner()->getParentOp());
  auto kind = function.getArgAttrOfType<mlir::StringAttr>(
      argument.getArgNumber(), kKindAttr);
  return kind && kind.getValue() == "parameter";
}

// A function that only entries call.
class Layer {
 public:
  Layer(FuncOp function, llvm::ArrayRef<CallOp> calls)
      : function_(function), calls_(calls) {}

  // Returns the number of gathers that moved to each call.
  int64_t run() {
    for (mlir::BlockArgument argument : function_.getArguments())
      if (llvm::all_of(calls_, [&](CallOp call) {
            return isParameter(call.getOperand(argument.getArgNumber()));
          }))
        parameters_.insert(argument);
    const auto gathers = llvm::filter_to_vector(
        function_.getOps<CollectiveOp>(), [&](CollectiveOp op) {
          return op.getKind() == exec::CollectiveKind::kAllGather &&
                 op.getGroupSize() > 1 && dependsOnParameters(op);
        });
    for (CollectiveOp gather : gathers) expose(gather);
    return gathers.size();
  }

 private:
  // True if `op` depends only on parameters, constants, and kernels that pack
  // them.
  bool dependsOnParameters(Operation* op) const {
    return llvm::all_of(op->getOperands(), [&](Value operand) {
      Operation* producer = operand.getDefiningOp();
      if (!producer) return parameters_.contains(operand);
      if (llvm::isa<mlir::arith::ConstantOp>(producer)) return true;
      return llvm::isa<exec::LaunchOp, exec::ViewOp>(producer) &&
             dependsOnParameters(producer);
    });
  }

  static void collect(Operation* op, llvm::SetVector<Operation*>& slice) {
    for (Value operand : op->getOperands())
      if (Operation* producer = operand.getDefiningOp())
        collect(producer, slice);
    slice.insert(op);
  }

  void expose(CollectiveOp gather) {
    llvm::SetVector<Operation*> slice;  // in order
    collect(gather, slice);
    for (CallOp call : calls_) {
      mlir::OpBuilder builder(call);
      mlir::IRMapping& known = known_[call];
      for (mlir::BlockArgument argument : function_.getArguments())
        if (parameters_.contains(argument))
          known.map(argument, call.getOperand(argument.getArgNumber()));
      for (Operation* op : slice)
        if (op->getNumResults() > 0 && !known.contains(op->getResult(0)))
          builder.clone(*op, known);
      call.getOperandsMutable().append(known.lookup(gather.getResult()));
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
  llvm::DenseMap<Operation*, mlir::IRMapping> known_;  // by call
};

class ExposeGathers : public impl::ExposeGathersPassBase<ExposeGathers> {
 public:
  void runOnOperation() override {
    llvm::SmallPtrSet<Operation*, 4> mains;
    for (const exec::Entry& entry : exec::entriesOf(getOperation()))
      mains.insert(entry.main);
    mlir::SymbolTable symbols(getOperation());
    llvm::MapVector<Operation*, llvm::SmallVector<CallOp>> calls;
    llvm::SmallPtrSet<Operation*, 16> called_elsewhere;
    getOperation().walk([&](CallOp call) {
      FuncOp callee = symbols.lookup<FuncOp>(call.getCallee());
      if (!callee) return;
      calls[callee].push_back(call);
      if (!mains.contains(call->getParentOp())) called_elsewhere.insert(callee);
    });
    for (auto& [callee, sites] : calls)
      if (!called_elsewhere.contains(callee))
        gathers += Layer(llvm::cast<FuncOp>(callee), sites).run();
  }
};

}  // namespace
}  // namespace partita::memory
