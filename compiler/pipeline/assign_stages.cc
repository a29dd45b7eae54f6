// Divides the operations of @main into balanced runs; see passes.td.
#include "compiler/autodiff/call_marks.h"
#include "compiler/core/stages.h"
#include "compiler/pipeline/passes.h"
#include "compiler/pipeline/work.h"
#include "compiler/plan/plan.h"
#include "compiler/sharding/scopes.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/StringExtras.h"

namespace partita::pipeline {

#define GEN_PASS_DEF_ASSIGNSTAGESPASS
#include "compiler/pipeline/passes.h.inc"

namespace {

using autodiff::kStageAttr;
using llvm::SmallVector;
using mlir::Operation;
using mlir::Value;
using mlir::func::FuncOp;

// Fraction of a device's memory available to values known before stages are
// cut.
constexpr double kPlannedFraction = 0.95;

double bytesOf(Value value) {
  auto type = llvm::cast<mlir::RankedTensorType>(value.getType());
  return static_cast<double>(type.getNumElements()) *
         llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

class AssignStages : public impl::AssignStagesPassBase<AssignStages> {
 public:
  using AssignStagesPassBase::AssignStagesPassBase;
  AssignStages(int64_t count, const plan::Plan& plan, const StageMemory& memory,
               const StageTimes& times)
      : plan_(plan), memory_(memory), times_(times) {
    stages = count;
  }

  void runOnOperation() override {
    if (stages < 1) {
      getOperation().emitError("stages: expected at least 1, found ")
          << stages.getValue();
      return signalPassFailure();
    }
    if (stages == 1) return;
    if (!last.empty()) plan_.stages.clear();
    for (llvm::StringRef glob : llvm::split(last, ';'))
      if (!glob.empty()) plan_.stages.push_back({glob.str(), {}, {}});
    auto main = getOperation().lookupSymbol<FuncOp>("main");
    if (!main) {
      getOperation().emitError("expected a function named 'main', found none");
      return signalPassFailure();
    }
    if (mlir::failed(refuseLoops())) return signalPassFailure();
    findFree(main);
    if (mlir::failed(cut(main))) return signalPassFailure();
    for (Operation* op : llvm::reverse(free_)) joinUsers(op);
  }

 private:
  // A rank receives what it needs once per step, not once per iteration.
  mlir::LogicalResult refuseLoops() {
    mlir::LogicalResult result = mlir::success();
    getOperation().walk([&](nn::LoopOp loop) {
      if (mlir::succeeded(result))
        result = loop.emitOpError(
            "expected no loop whose number of iterations depends on data in a "
            "model that is divided into stages, found one; leave D out of the "
            "plan");
    });
    return result;
  }

  // Finds operations that depend on inputs and constants alone.
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
    auto first = plan_.stages.empty() ? balance() : cutAsListed(main);
    if (mlir::failed(first)) return mlir::failure();
    for (auto [i, op] : llvm::enumerate(steps_))
      mark(op,
           llvm::upper_bound(*first, static_cast<int>(i)) - first->begin() - 1);
    return mlir::success();
  }

  // Returns the first step of each stage.
  mlir::FailureOr<std::vector<int>> balance() {
    Work work;
    std::vector<core::Piece> pieces;
    for (auto [i, op] : llvm::enumerate(steps_)) {
      pieces.emplace_back();
      pieces.back().time = static_cast<double>(work.of(op));
      place_[op] = i;
    }
    setTimes(pieces);
    for (auto [i, op] : llvm::enumerate(steps_))
      for (Value result : op->getResults()) {
        size_t last_use = i;
        for (Operation* user : result.getUsers())
          if (auto found = place_.find(user); found != place_.end())
            last_use = std::max<size_t>(last_use, found->second);
        for (size_t before = i; before < last_use; ++before)
          pieces[before].output += bytesOf(result);
      }
    core::StageLimits limits = memory_.limits;
    limits.stages = static_cast<int>(stages);
    if (memory_.measure) addMemory(pieces, limits);
    absl::StatusOr<core::StageCut> cut = core::BalanceStages(pieces, limits);
    // The estimate is approximate, so relax the limit here; the check of the
    // whole program's memory decides.
    while (absl::IsResourceExhausted(cut.status())) {
      limits.memory = 1.05 * std::max(limits.memory, 1.0);
      cut = core::BalanceStages(pieces, limits);
    }
    if (cut.ok()) return cut->first;
    return refuse(depthPlace(), std::string(cut.status().message()));
  }

  // Replaces estimated work by measured seconds if all of them are known. The
  // seconds of a run are distributed over its operations by work.
  void setTimes(std::vector<core::Piece>& pieces) {
    const auto isLayer = [&](Operation* op) {
      auto call = llvm::dyn_cast<mlir::func::CallOp>(op);
      return call && times_.calls.contains(call.getCallee());
    };
    std::vector<std::vector<size_t>> runs;
    bool in_run = false;
    for (auto [i, op] : llvm::enumerate(steps_)) {
      const bool layer = isLayer(op);
      if (!layer && !in_run) runs.emplace_back();
      if (!layer) runs.back().push_back(i);
      in_run = !layer;
    }
    if (times_.calls.empty() || runs.size() != times_.runs.size()) return;
    for (auto [i, op] : llvm::enumerate(steps_))
      if (isLayer(op))
        pieces[i].time =
            times_.calls.lookup(llvm::cast<mlir::func::CallOp>(op).getCallee());
    for (auto [run, seconds] : llvm::zip_equal(runs, times_.runs)) {
      double all = 0;
      for (size_t i : run) all += pieces[i].time;
      for (size_t i : run)
        pieces[i].time = all > 0 ? seconds * pieces[i].time / all : 0;
    }
  }

  // Sets the memory of each piece, and subtracts the remaining memory from the
  // limit.
  void addMemory(std::vector<core::Piece>& pieces, core::StageLimits& limits) {
    std::vector<std::vector<int>> parts;
    for (auto [i, op] : llvm::enumerate(steps_)) {
      // Operations between calls become one function, so their saved bytes are
      // known only in total.
      if (i == 0 || llvm::isa<mlir::func::CallOp>(op) ||
          llvm::isa<mlir::func::CallOp>(steps_[i - 1]))
        parts.emplace_back();
      parts.back().push_back(static_cast<int>(i));
      mark(op, static_cast<int64_t>(parts.size()) - 1);
    }
    for (Operation* op : llvm::reverse(free_)) joinUsers(op);
    mlir::FailureOr<KeptBytes> kept =
        memory_.measure(getOperation(), static_cast<int>(parts.size()));
    for (Operation* op : free_) op->removeAttr(kStageAttr);
    if (mlir::failed(kept)) return;
    double largest = 0;
    for (auto [part, steps] : llvm::enumerate(parts)) {
      spread(kept->saved[part], steps, pieces);
      largest = std::max(largest, kept->saved[part]);
    }
    addParameters(*kept, pieces);
    // Backward of a layer holds gradients of its saved values. Transfer buffers
    // and fragmentation take a few percent.
    limits.memory = std::max(kPlannedFraction * limits.memory - largest, 0.0);
  }

  // Distributes `saved` in proportion to the bytes of results.
  void spread(double saved, llvm::ArrayRef<int> steps,
              std::vector<core::Piece>& pieces) {
    const auto size = [&](int step) {
      double bytes = 0;
      for (Value result : steps_[step]->getResults()) bytes += bytesOf(result);
      return bytes;
    };
    double all = 0;
    for (int step : steps) all += size(step);
    for (int step : steps)
      if (all > 0) pieces[step].saved += saved * size(step) / all;
  }

  // Assigns each parameter to the first step that uses it.
  void addParameters(const KeptBytes& kept, std::vector<core::Piece>& pieces) {
    auto main = getOperation().lookupSymbol<FuncOp>("main");
    for (mlir::BlockArgument argument : main.getArguments()) {
      auto name = main.getArgAttrOfType<mlir::StringAttr>(
          argument.getArgNumber(), nn::kNameAttr);
      auto found =
          name ? kept.parameters.find(name.getValue()) : kept.parameters.end();
      if (found == kept.parameters.end()) continue;
      size_t first = pieces.size();
      for (Operation* user : argument.getUsers())
        if (auto place = place_.find(user); place != place_.end())
          first = std::min(first, place->second);
      if (first == pieces.size()) continue;
      pieces[first].weights +=
          found->second.all + (memory_.versions - 1) * found->second.alone;
    }
  }

  // Returns the first step of each stage, if the plan lists the last layers.
  mlir::FailureOr<std::vector<int>> cutAsListed(FuncOp main) {
    if (static_cast<int64_t>(plan_.stages.size()) != stages)
      return refuse("stages", "expected a last layer for each of " +
                                  std::to_string(stages) + " stages, found " +
                                  std::to_string(plan_.stages.size()));
    std::vector<sharding::Scope> scopes;
    for (const plan::Stage& stage : plan_.stages)
      scopes.push_back({{stage.to}, placeOf(stage)});
    auto masks = sharding::scopesInMain(getOperation(), scopes);
    if (mlir::failed(masks)) return mlir::failure();
    llvm::DenseMap<Operation*, size_t> number;
    for (auto [i, op] : llvm::enumerate(main.front().without_terminator()))
      number[&op] = i;
    std::vector<int> first = {0};
    for (auto [stage, scope] : llvm::enumerate(plan_.stages)) {
      int end = 0;  // after the last step in the scope
      for (auto [i, op] : llvm::enumerate(steps_))
        if ((*masks)[number[op]][stage]) end = static_cast<int>(i) + 1;
      if (end <= first.back())
        return refuse(
            placeOf(scope),
            "expected layers in the order in which they are computed, found '" +
                scope.to + "' not behind " +
                (stage == 0 ? "the inputs"
                            : "'" + plan_.stages[stage - 1].to + "'"));
      first.push_back(end);
    }
    first.pop_back();
    return first;
  }

  std::string placeOf(const plan::Stage& stage) const {
    return plan_.origin.empty()
               ? "stages to"
               : plan::Where(plan_, stage.where) + ": stages to";
  }

  // Returns the plan's entry that divides D.
  std::string depthPlace() const {
    for (const plan::Entry& entry : plan_.shard)
      for (const plan::ShardedDimension& division : entry.dimensions)
        if (division.dimension == "D")
          return plan::Where(plan_, division.where) + ": shard 'D'";
    return "D";
  }

  mlir::LogicalResult refuse(const std::string& place,
                             const std::string& what) {
    return mlir::emitError(getOperation().getLoc()) << place << ": " << what;
  }

  static void mark(Operation* op, int64_t stage) {
    op->setAttr(kStageAttr,
                mlir::Builder(op->getContext()).getI64IntegerAttr(stage));
  }

  // Visits operations last to first, so that users already have stages.
  static void joinUsers(Operation* op) {
    mlir::Attribute stage;
    for (Operation* user : op->getUsers()) {
      mlir::Attribute other = user->getAttr(kStageAttr);
      if (!other || (stage && stage != other)) return;
      stage = other;
    }
    if (stage) op->setAttr(kStageAttr, stage);
  }

  plan::Plan plan_;  // its stages, with source places for diagnostics
  StageMemory memory_;
  StageTimes times_;
  SmallVector<Operation*> free_, steps_;
  llvm::DenseMap<Operation*, size_t> place_;  // index in steps_
};

}  // namespace

std::unique_ptr<mlir::Pass> createAssignStagesPass(int64_t stages,
                                                   const plan::Plan& plan,
                                                   const StageMemory& memory,
                                                   const StageTimes& times) {
  return std::make_unique<AssignStages>(stages, plan, memory, times);
}

}  // namespace partita::pipeline
