#include "compiler/kernels/merge_late_steps.h"

#include <map>
#include <optional>

#include "compiler/kernels/reduction_marks.h"
#include "dialects/exec/dialect.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/DenseSet.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

namespace partita::kernels {
namespace {

using llvm::SmallVector;
using mlir::Operation;

// Partial results of a reduction that may stay in memory for longer.
constexpr int64_t kMostBytes = 8 << 20;
// Reductions of one kernel. Each has a loop of its own and two parameters.
constexpr size_t kMostSteps = 16;

class Merger {
 public:
  Merger(mlir::Block& block, FusionGroups& fusion) : fusion_(fusion) {
    int64_t barriers = 0;
    for (Operation& op : block) {
      barriers += llvm::isa<mlir::func::CallOp, nn::LoopOp, exec::SendOp,
                            exec::ReceiveOp>(op);
      barriers_before_[&op] = barriers;
    }
    for (auto [index, group] : llvm::enumerate(fusion.groups))
      for (Operation* op : group) group_of_[op] = index;
  }

  void run() {
    // The groups of a step, between two barriers, in program order.
    std::map<std::pair<int64_t, int64_t>, SmallVector<size_t>> steps;
    for (auto [index, group] : llvm::enumerate(fusion_.groups))
      if (const std::optional<int64_t> step = stepOf(group))
        steps[{*step, barriers_before_.lookup(group.back())}].push_back(index);
    for (const auto& [key, groups] : steps) {
      SmallVector<size_t> merged;
      for (const size_t group : groups) {
        const auto* into = llvm::find_if(
            merged, [&](size_t other) { return mayMerge(other, group); });
        if (into != merged.end())
          merge(*into, group);
        else
          merged.push_back(group);
      }
    }
    llvm::erase_if(fusion_.groups, [](llvm::ArrayRef<Operation*> group) {
      return group.empty();
    });
  }

 private:
  // The step of the reduction that is all of the group's work, if it is late
  // and small.
  static std::optional<int64_t> stepOf(llvm::ArrayRef<Operation*> group) {
    nn::ReduceOp step;
    for (Operation* op : group) {
      if (mlir::OpTrait::hasElementwiseMappableTraits(op)) continue;
      auto reduce = llvm::dyn_cast<nn::ReduceOp>(op);
      if (step || !reduce || !reduce->hasAttr(kLateStepAttr))
        return std::nullopt;
      step = reduce;
    }
    if (!step) return std::nullopt;
    const auto input =
        llvm::cast<mlir::RankedTensorType>(step.getInput().getType());
    if (input.getNumElements() * input.getElementTypeBitWidth() / 8 >
        kMostBytes)
      return std::nullopt;
    for (Operation* op : group)
      if (elementsOf(op) > elementsOf(step)) return std::nullopt;
    return step->getAttrOfType<mlir::IntegerAttr>(kLateStepAttr).getInt();
  }

  static int64_t elementsOf(Operation* op) {
    return llvm::cast<mlir::RankedTensorType>(op->getResult(0).getType())
        .getNumElements();
  }

  bool mayMerge(size_t into, size_t from) const {
    size_t steps = 1;
    for (Operation* op : fusion_.groups[into])
      steps += llvm::isa<nn::ReduceOp>(op);
    return steps <= kMostSteps && !reaches(into, from) && !reaches(from, into);
  }

  void merge(size_t into, size_t from) {
    for (Operation* op : fusion_.groups[from]) group_of_[op] = into;
    llvm::append_range(fusion_.groups[into], fusion_.groups[from]);
    fusion_.groups[from].clear();
    llvm::sort(fusion_.groups[into], [](Operation* a, Operation* b) {
      return a->isBeforeInBlock(b);
    });
  }

  // True if the group `to` depends on the group `from`.
  bool reaches(size_t from, size_t to) const {
    llvm::DenseSet<Operation*> seen;
    SmallVector<Operation*> open;
    for (Operation* member : fusion_.groups[from])
      llvm::append_range(open, member->getUsers());
    while (!open.empty()) {
      Operation* next = open.pop_back_val();
      if (!seen.insert(next).second) continue;
      llvm::append_range(open, next->getUsers());
      const auto found = group_of_.find(next);
      if (found == group_of_.end() || found->second == from) continue;
      if (found->second == to) return true;
      for (Operation* member : fusion_.groups[found->second])
        llvm::append_range(open, member->getUsers());
    }
    return false;
  }

  FusionGroups& fusion_;
  llvm::DenseMap<Operation*, size_t> group_of_;
  llvm::DenseMap<Operation*, int64_t> barriers_before_;
};

}  // namespace

void mergeLateSteps(mlir::Block& block, FusionGroups& fusion) {
  Merger(block, fusion).run();
}

}  // namespace partita::kernels
