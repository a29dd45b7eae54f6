// Balanced runs of the operations of @main; see passes.td.
#include "compiler/autodiff/call_marks.h"
#include "compiler/core/stages.h"
#include "compiler/pipeline/passes.h"
#include "compiler/pipeline/work.h"
#include "dialects/nn/dialect.h"

namespace partita::pipeline {

#define GEN_PASS_DEF_ASSIGNSTAGESPASS
#include "compiler/pipeline/passes.h.inc"

namespace {

using autodiff::kStageAttr;
using llvm::SmallVector;
using mlir::Operation;
using mlir::Value;
using mlir::func::FuncOp;

double bytesOf(Value value) {
  auto type = llvm::cast<mlir::RankedTensorType>(value.getType());
  return static_cast<double>(type.getNumElements()) *
         llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

class AssignStages : public impl::AssignStagesPassBase<AssignStages> {
 public:
  using AssignStagesPassBase::AssignStagesPassBase;

  void runOnOperation() override {
    if (stages <= 1) return;
    auto main = getOperation().lookupSymbol<FuncOp>("main");
    if (!main) {
      getOperation().emitError("expected a function named 'main', found none");
      return signalPassFailure();
    }
    findFree(main);
    if (mlir::failed(cut(main))) return signalPassFailure();
    for (Operation* op : llvm::reverse(free_)) joinUsers(op);
  }

 private:
  // What follows from inputs and constants alone.
  void findFree(FuncOp main) {
    llvm::DenseSet<Value> free;
    for (mlir::BlockArgument argument : main.getArguments()) {
      auto kind = main.getArgAttrOfType<mlir::StringAttr>(
          argument.getArgNumber(), nn::kKindAttr);
      if (!kind || kind.getValue() != "parameter") free.insert(argument);
    }
    for (Operation& op : main.front().without_terminator()) {
      const bool follows = !llvm::isa<mlir::func::CallOp>(op) &&
                           llvm::all_of(op.getOperands(), [&](Value operand) {
                             return free.contains(operand);
                           });
      (follows ? free_ : steps_).push_back(&op);
      if (follows) free.insert(op.result_begin(), op.result_end());
    }
  }

  mlir::LogicalResult cut(FuncOp main) {
    Work work;
    std::vector<core::Piece> pieces;
    for (auto [i, op] : llvm::enumerate(steps_)) {
      pieces.emplace_back();
      pieces.back().time = static_cast<double>(work.of(op));
      place_[op] = i;
    }
    for (auto [i, op] : llvm::enumerate(steps_))
      for (Value result : op->getResults()) {
        size_t last = i;  // step that reads it
        for (Operation* user : result.getUsers())
          if (auto found = place_.find(user); found != place_.end())
            last = std::max<size_t>(last, found->second);
        for (size_t before = i; before < last; ++before)
          pieces[before].output += bytesOf(result);
      }
    core::StageLimits limits;
    limits.stages = static_cast<int>(stages);
    absl::StatusOr<core::StageCut> cut = core::BalanceStages(pieces, limits);
    if (!cut.ok())
      return main.emitError("D: ") << std::string(cut.status().message());
    for (auto [i, op] : llvm::enumerate(steps_))
      mark(op, llvm::upper_bound(cut->first, static_cast<int>(i)) -
                   cut->first.begin() - 1);
    return mlir::success();
  }

  static void mark(Operation* op, int64_t stage) {
    op->setAttr(kStageAttr,
                mlir::Builder(op->getContext()).getI64IntegerAttr(stage));
  }

  // Users come first: the operations go from the last one to the first.
  static void joinUsers(Operation* op) {
    mlir::Attribute stage;
    for (Operation* user : op->getUsers()) {
      mlir::Attribute other = user->getAttr(kStageAttr);
      if (!other || (stage && stage != other)) return;
      stage = other;
    }
    if (stage) op->setAttr(kStageAttr, stage);
  }

  SmallVector<Operation*> free_, steps_;
  llvm::DenseMap<Operation*, size_t> place_;  // in steps_
};

}  // namespace
}  // namespace partita::pipeline
