// Chooses which arguments of @main to divide, and along which dimension.
#include "compiler/sharding/divide_states.h"

#include <algorithm>

#include "compiler/sharding/stages_of_main.h"
#include "dialects/nn/dialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::sharding {
namespace {

using mlir::func::FuncOp;

// Returns the dimension to divide further by `parts`: an evenly divisible one
// if there is any, and of these the largest per shard. Returns -1 if no open
// dimension has two rows left.
int chooseDim(const std::vector<int64_t>& shape, const core::Sharding& sharding,
              int64_t parts) {
  int best = -1;
  std::pair<bool, int64_t> best_worth;
  const std::vector<int64_t> local = core::LocalShape(shape, sharding);
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!sharding.dims[i].open || local[i] < 2) continue;
    const bool even =
        shape[i] % (core::SizeOf(sharding.dims[i].axes) * parts) == 0;
    const std::pair<bool, int64_t> worth = {even, local[i]};
    if (best >= 0 && worth <= best_worth) continue;
    best = static_cast<int>(i);
    best_worth = worth;
  }
  return best;
}

void divide(const std::vector<int64_t>& shape,
            const std::vector<core::AxisRef>& axes, int priority,
            core::Sharding& sharding) {
  std::vector<core::AxisRef> added;
  for (core::AxisRef axis : axes) {
    if (core::Uses(sharding, axis)) continue;
    axis.priority = priority;
    added.push_back(axis);
  }
  if (added.empty()) return;
  const int64_t parts = core::SizeOf(added);
  const int dim = chooseDim(shape, sharding, parts);
  if (dim < 0) return;
  core::DimSharding& divided = sharding.dims[dim];
  const int64_t block = core::BlockOf(shape[dim], divided);
  divided.axes.insert(divided.axes.end(), added.begin(), added.end());
  divided.block = llvm::divideCeil(block, parts);
  core::CanonicalizeBlocks(shape, sharding);
}

// Gives the gradients of microbatches, and their sums, the sharding of the
// value that they update. They are not left partial: each microbatch's summand
// is reduced at once. The sums are the last additions before the update that
// returns `updated`.
void divideSums(mlir::Value updated, int64_t microbatches,
                const Problem& problem, const core::Sharding& sharding,
                std::vector<core::Sharding>& shardings) {
  auto update = updated.getDefiningOp<mlir::func::CallOp>();
  mlir::Value sum = update ? update.getOperand(1) : mlir::Value();
  core::Sharding closed = sharding;
  for (core::DimSharding& dim : closed.dims) dim.open = false;
  const auto set = [&](mlir::Value value) {
    const int id = problem.ids.lookup(value);
    if (problem.graph.values[id].shape.size() == closed.dims.size())
      shardings[id] = closed;
  };
  for (int64_t left = microbatches - 1; sum && left > 0; --left) {
    auto add = sum.getDefiningOp<mlir::arith::AddFOp>();
    if (!add) return;
    set(add.getResult());
    set(add.getRhs());
    if (left == 1) set(add.getLhs());
    sum = add.getLhs();
  }
}

// Returns the gradient argument of the update function that returns `updated`;
// null if there is none.
mlir::BlockArgument gradientOf(mlir::ModuleOp module, mlir::Value updated) {
  auto update = updated.getDefiningOp<mlir::func::CallOp>();
  return update ? module.lookupSymbol<FuncOp>(update.getCallee()).getArgument(1)
                : mlir::BlockArgument();
}

// True if a state "w/rows" has another shape than the parameter "w".
bool isReduced(llvm::StringRef name, mlir::Value state,
               const llvm::StringMap<mlir::BlockArgument>& arguments) {
  const auto shapeOf = [](mlir::Value value) {
    return llvm::cast<mlir::RankedTensorType>(value.getType()).getShape();
  };
  mlir::Value parameter = arguments.lookup(name.rsplit('/').first);
  return parameter && shapeOf(parameter) != shapeOf(state);
}

}  // namespace

std::vector<core::AxisRef> axesOfBatch(const plan::Plan& plan) {
  return axesOfBatch(plan, {});
}

std::vector<core::AxisRef> axesOfBatch(const plan::Plan& plan,
                                       const std::set<int>& stages) {
  std::vector<core::AxisRef> axes;
  for (const plan::Entry& entry : plan.shard) {
    if (!stages.empty() && llvm::none_of(stages, [&](int stage) {
          return plan::HoldsIn(entry, stage);
        }))
      continue;
    for (const plan::ShardedDimension& division : entry.dimensions)
      if (division.dimension == "B")
        for (const core::AxisRef& axis : division.axes)
          if (!core::OverlapAny(axis, axes)) axes.push_back(axis);
  }
  return axes;
}

mlir::LogicalResult divideStates(mlir::ModuleOp module, const plan::Plan& plan,
                                 const Problem& problem, int priority,
                                 std::vector<core::Sharding>& shardings) {
  auto found = plan.fields.find("zero");
  const auto refuse = [&](const char* what) {
    return module.emitError(found == plan.fields.end()
                                ? "--zero"
                                : plan::Where(plan, found->second) + ": zero")
           << ": " << plan.zero << what;
  };
  if (axesOfBatch(plan).empty())
    return refuse(
        " divides training state over the axes of B, and no entry "
        "divides B; add one as 'B: data', or leave zero out");
  auto main = module.lookupSymbol<FuncOp>("main");
  const StagesOfMain stages(main);
  llvm::StringMap<mlir::BlockArgument> arguments;
  for (mlir::BlockArgument argument : main.getArguments())
    if (auto name = main.getArgAttrOfType<mlir::StringAttr>(
            argument.getArgNumber(), nn::kNameAttr))
      arguments[name.getValue()] = argument;
  bool any = false;
  for (unsigned i = 0; i < main.getNumResults(); ++i) {
    auto name = main.getResultAttrOfType<mlir::StringAttr>(i, nn::kUpdatesAttr);
    if (!name) continue;
    any = true;
    mlir::BlockArgument updated = arguments.lookup(name.getValue());
    auto kind = main.getArgAttrOfType<mlir::StringAttr>(updated.getArgNumber(),
                                                        nn::kKindAttr);
    const std::vector<core::AxisRef> axes =
        axesOfBatch(plan, stages.of(updated));
    mlir::Value returned = main.front().getTerminator()->getOperand(i);
    int id = problem.ids.lookup(updated);
    // Row and column statistics are small, and each lacks dimensions of the
    // parameter. They follow the gradient, which is divided instead.
    if (isReduced(name.getValue(), updated, arguments))
      if (mlir::BlockArgument gradient = gradientOf(module, returned))
        id = problem.ids.lookup(gradient);
    if (plan.zero == 3 || (kind && kind.getValue() == "state")) {
      divide(problem.graph.values[id].shape, axes, priority, shardings[id]);
      if (plan.zero >= 2)
        divideSums(returned, plan.microbatches, problem, shardings[id],
                   shardings);
    } else {
      shardings[id].replicated.insert(shardings[id].replicated.end(),
                                      axes.begin(), axes.end());
    }
  }
  if (!any)
    return refuse(
        " divides training state, and this program does not train; "
        "compile with --train, or leave zero out");
  return mlir::success();
}

}  // namespace partita::sharding
