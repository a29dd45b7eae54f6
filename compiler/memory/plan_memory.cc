// Lifetimes from SSA, places from planArena; see passes.td.
#include "compiler/memory/arena.h"
#include "compiler/memory/passes.h"
#include "dialects/exec/dialect.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::memory {

#define GEN_PASS_DEF_PLANMEMORYPASS
#include "compiler/memory/passes.h.inc"

namespace {

using mlir::func::CallOp;
using mlir::func::FuncOp;

// What a value's memory belongs to: views lead back to the value they view.
mlir::Value rootOf(mlir::Value value) {
  while (auto view = value.getDefiningOp<exec::ViewOp>())
    value = view.getInput();
  return value;
}

// Plans one function whose callees are planned already.
class FunctionPlanner {
 public:
  FunctionPlanner(FuncOp function,
                  llvm::DenseMap<llvm::StringRef, int64_t>& frame_bytes)
      : function_(function), frame_bytes_(frame_bytes) {}

  int64_t run() {
    numberSteps();
    assignReturned();
    collectLifetimes();
    ArenaPlan plan = planArena(lifetimes_);
    annotate(plan);
    function_->setAttr(
        exec::kFrameBytesAttr,
        mlir::Builder(function_.getContext()).getI64IntegerAttr(plan.bytes));
    frame_bytes_[function_.getName()] = plan.bytes;
    return lifetimes_.size();
  }

 private:
  void numberSteps() {
    int64_t step = 0;
    for (mlir::Operation& op : function_.front()) {
      for (mlir::Value operand : op.getOperands())
        last_use_[rootOf(operand)] = step;
      step_[&op] = step++;
    }
  }

  // Results that may be written where the caller wants them. A value returned
  // twice, or one that is an argument or a constant, is copied by the emitter
  // instead.
  void assignReturned() {
    mlir::Operation* terminator = function_.front().getTerminator();
    for (auto [index, value] : llvm::enumerate(terminator->getOperands())) {
      mlir::Value root = rootOf(value);
      mlir::Operation* producer = root.getDefiningOp();
      if (!producer || llvm::isa<mlir::arith::ConstantOp>(producer)) continue;
      returned_.try_emplace(root, -1 - static_cast<int64_t>(index));
    }
  }

  void collectLifetimes() {
    for (mlir::Operation& op : function_.front()) {
      if (llvm::isa<mlir::arith::ConstantOp, exec::ViewOp>(op)) continue;
      const int64_t step = step_[&op];
      for (mlir::Value result : op.getResults()) {
        if (returned_.contains(result)) continue;
        auto used = last_use_.find(result);
        slot_[result] = lifetimes_.size();
        lifetimes_.push_back(
            {exec::bufferBytes(
                 llvm::cast<mlir::RankedTensorType>(result.getType())),
             step, used == last_use_.end() ? step : used->second});
      }
      if (auto call = llvm::dyn_cast<CallOp>(op)) {
        frame_slot_[&op] = lifetimes_.size();
        lifetimes_.push_back(
            {frame_bytes_.lookup(call.getCallee()), step, step});
      }
    }
  }

  void annotate(const ArenaPlan& plan) {
    mlir::Builder builder(function_.getContext());
    for (mlir::Operation& op : function_.front()) {
      if (llvm::isa<mlir::arith::ConstantOp, exec::ViewOp>(op)) continue;
      llvm::SmallVector<int64_t> offsets;
      for (mlir::Value result : op.getResults()) {
        auto given = returned_.find(result);
        offsets.push_back(given != returned_.end()
                              ? given->second
                              : plan.offsets[slot_[result]]);
      }
      if (!offsets.empty())
        op.setAttr(exec::kOffsetsAttr, builder.getDenseI64ArrayAttr(offsets));
      if (auto slot = frame_slot_.find(&op); slot != frame_slot_.end())
        op.setAttr(exec::kFrameOffsetAttr,
                   builder.getI64IntegerAttr(plan.offsets[slot->second]));
    }
  }

  FuncOp function_;
  llvm::DenseMap<llvm::StringRef, int64_t>& frame_bytes_;
  llvm::DenseMap<mlir::Operation*, int64_t> step_;
  llvm::DenseMap<mlir::Value, int64_t> last_use_, returned_;
  llvm::DenseMap<mlir::Value, size_t> slot_;
  llvm::DenseMap<mlir::Operation*, size_t> frame_slot_;
  std::vector<Lifetime> lifetimes_;
};

class PlanMemory : public impl::PlanMemoryPassBase<PlanMemory> {
 public:
  void runOnOperation() override {
    for (FuncOp function : getOperation().getOps<FuncOp>())
      if (mlir::failed(plan(function))) return signalPassFailure();
  }

 private:
  mlir::LogicalResult plan(FuncOp function) {
    if (function.isExternal() || function->hasAttr(exec::kKernelAttr) ||
        frame_bytes_.contains(function.getName()))
      return mlir::success();
    if (!active_.insert(function).second)
      return function.emitError("expected a call graph without cycles");
    mlir::SymbolTable symbols(getOperation());
    for (auto call : function.getOps<CallOp>()) {
      auto callee = symbols.lookup<FuncOp>(call.getCallee());
      if (!callee)
        return call.emitOpError("expected a function named '")
               << call.getCallee() << "'";
      if (mlir::failed(plan(callee))) return mlir::failure();
    }
    buffers += FunctionPlanner(function, frame_bytes_).run();
    return mlir::success();
  }

  llvm::DenseMap<llvm::StringRef, int64_t> frame_bytes_;
  llvm::DenseSet<mlir::Operation*> active_;
};

}  // namespace
}  // namespace partita::memory
