// Changes types of arguments and results of @main; its operations stay.
#include "compiler/sharding/own_states.h"

#include <utility>

#include "compiler/autodiff/device_marks.h"
#include "compiler/sharding/dims.h"
#include "compiler/sharding/divide_states.h"
#include "compiler/sharding/problem.h"
#include "dialects/nn/dialect.h"
#include "dialects/nn/math_builder.h"
#include "dialects/nn/signature.h"

namespace partita::sharding {
namespace {

using llvm::SmallVector;
using mlir::failure;
using mlir::LogicalResult;
using mlir::RankedTensorType;
using mlir::success;
using mlir::Value;
using mlir::func::CallOp;
using mlir::func::FuncOp;

RankedTensorType withRows(RankedTensorType type, int64_t rows) {
  SmallVector<int64_t> shape = {rows};
  llvm::append_range(shape, type.getShape());
  return type.clone(shape);
}

// The indices of the states.
SmallVector<unsigned> ownStates(FuncOp main) {
  SmallVector<unsigned> own;
  if (!main->hasAttr(autodiff::kOwnStatesAttr)) return own;
  for (unsigned i = 0; i < main.getNumArguments(); ++i) {
    auto kind = main.getArgAttrOfType<mlir::StringAttr>(i, nn::kKindAttr),
         name = main.getArgAttrOfType<mlir::StringAttr>(i, nn::kNameAttr);
    if (!kind || kind.getValue() != "state" || !name) continue;
    const llvm::StringRef state = name.getValue().rsplit('/').second;
    if (state == autodiff::kLocalMomentum || state == autodiff::kLocalSum)
      own.push_back(i);
  }
  return own;
}

// The axes over which the operations behind a value sum it.
std::vector<core::AxisRef> axesOfSum(
    const Problem& problem, const std::vector<core::Sharding>& shardings,
    int value) {
  const core::Graph& graph = problem.graph;
  std::vector<std::pair<int, int>> makers(graph.values.size(), {-1, 0});
  for (size_t op = 0; op < graph.ops.size(); ++op)
    for (size_t i = 0; i < graph.ops[op].results.size(); ++i)
      makers[graph.ops[op].results[i]] = {static_cast<int>(op),
                                          static_cast<int>(i)};
  // Loops tie values in circles.
  for (size_t steps = 0; steps < makers.size() && makers[value].first >= 0;
       ++steps) {
    const auto [index, result] = makers[value];
    const core::OpSharding decided = core::Resolve(graph, index, shardings);
    if (!decided.results[result].unreduced.empty())
      return decided.results[result].unreduced;
    const core::Op& op = graph.ops[index];
    const auto next = llvm::find_if(op.rule.linear, [&](int i) {
      return !graph.values[op.operands[i]].is_zero;
    });
    if (next == op.rule.linear.end()) break;
    value = op.operands[*next];
  }
  return {};
}

bool dividesAny(const core::Sharding& sharding,
                const std::vector<core::AxisRef>& axes) {
  return llvm::any_of(sharding.dims, [&](const core::DimSharding& dim) {
    return llvm::any_of(dim.axes, [&](const core::AxisRef& axis) {
      return core::OverlapAny(axis, axes);
    });
  });
}

// Refuses a gradient of which devices have no shares.
LogicalResult refuseGradient(mlir::Operation* op, llvm::StringRef name,
                             const std::vector<core::AxisRef>& rows,
                             const std::vector<core::AxisRef>& summed,
                             const plan::Plan& plan) {
  auto error = op->emitError("expected every device's own gradient of '")
               << name << "', a sum over " << core::ToString(plan.mesh, rows)
               << ", the axes of B, ";
  for (const core::AxisRef& axis : summed) {
    if (core::OverlapAny(axis, rows)) continue;
    error << "found one over " << core::ToString(plan.mesh, summed);
    for (const plan::Entry& entry : plan.shard)
      for (const plan::ShardedDimension& division : entry.dimensions)
        if (core::OverlapAny(axis, division.axes))
          error << "; " << plan::Where(plan, division.where) << ": shard '"
                << division.dimension << "' divides it too";
    return error << "; with --train 0/1-adam leave that out, or take --train "
                    "1bit-adam";
  }
  return error << "found the same on all devices; local steps of 0/1-adam need "
                  "a model whose gradients are sums over the batch; take "
                  "--train adamw, or leave out what looks at the whole batch, "
                  "such as nn.batch_norm";
}

}  // namespace

bool hasOwnStates(FuncOp main) { return !ownStates(main).empty(); }

void giveOwnStates(FuncOp main, const DeviceRows& rows) {
  mlir::Operation* terminator = main.front().getTerminator();
  mlir::OpBuilder begin = mlir::OpBuilder::atBlockBegin(&main.front()),
                  end(terminator);
  SmallVector<mlir::Type> arguments(main.getArgumentTypes()),
      results(main.getResultTypes());
  llvm::StringMap<unsigned> updates;
  for (unsigned i = 0; i < main.getNumResults(); ++i)
    if (auto name =
            main.getResultAttrOfType<mlir::StringAttr>(i, nn::kUpdatesAttr))
      updates[name.getValue()] = i;
  const SmallVector<unsigned> own = ownStates(main);
  for (unsigned i : own) {
    mlir::BlockArgument state = main.getArgument(i);
    const auto type = withRows(nn::MathBuilder::typeOf(state), rows.count());
    arguments[i] = type;
    state.setType(type);
    Value row = rows.ownRow(begin, state);
    state.replaceAllUsesExcept(row, row.getDefiningOp());
    const auto name = main.getArgAttrOfType<mlir::StringAttr>(i, nn::kNameAttr);
    const auto update = updates.find(name.getValue());
    if (update == updates.end()) continue;
    mlir::OpOperand& result = terminator->getOpOperand(update->second);
    results[update->second] = type;
    Value shares = rows.sharesOf(end, result.get());
    rows.placeOpen(shares);
    result.set(shares);
  }
  main->removeAttr(autodiff::kOwnStatesAttr);
  main.setType(mlir::FunctionType::get(main.getContext(), arguments, results));
  for (unsigned i : own) {
    main.removeArgAttr(i, kDimsAttr);
    if (auto viewed = main.getArgAttrOfType<mlir::TypeAttr>(i, nn::kViewOfAttr))
      main.setArgAttr(
          i, nn::kViewOfAttr,
          mlir::TypeAttr::get(withRows(
              llvm::cast<RankedTensorType>(viewed.getValue()), rows.count())));
    rows.placeOpen(main.getArgument(i));
  }
  for (CallOp call : main.getOps<CallOp>()) {
    auto name =
        call->getAttrOfType<mlir::StringAttr>(autodiff::kOwnGradientAttr);
    if (!name) continue;
    mlir::OpBuilder builder(call);
    Value shares = rows.sharesOf(builder, call.getOperand(1));
    shares.getDefiningOp()->setAttr(kOwnShareAttr, name);
    rows.placeOpen(shares);
    call.setOperand(1, rows.ownRow(builder, shares));
    call->removeAttr(autodiff::kOwnGradientAttr);
  }
}

LogicalResult checkEntriesOfOwnStates(mlir::ModuleOp module,
                                      const plan::Plan& plan) {
  const std::vector<core::AxisRef> rows = axesOfBatch(plan);
  for (const plan::Entry& entry : plan.shard)
    for (const plan::ShardedDimension& division : entry.dimensions)
      if (division.dimension != "B" &&
          llvm::any_of(division.axes, [&](const core::AxisRef& axis) {
            return core::OverlapAny(axis, rows);
          }))
        return module.emitError(plan::Where(plan, division.where))
               << ": expected no axis of B for another dimension with --train "
                  "0/1-adam, whose parameters differ between the devices that "
                  "share the batch; found shard '"
               << division.dimension << "' over "
               << core::ToString(plan.mesh, division.axes)
               << "; give it another axis, or leave it out";
  return success();
}

LogicalResult checkOwnStates(mlir::ModuleOp module, const plan::Plan& plan,
                             const Problem& problem,
                             const std::vector<core::Sharding>& shardings) {
  const mlir::WalkResult walked = module.walk([&](mlir::Operation* op) {
    const auto found = problem.operations.find(op);
    if (!op->hasAttr(kSharesAttr) || found == problem.operations.end())
      return mlir::WalkResult::advance();
    const int from = problem.ids.lookup(op->getOperand(0)),
              to = problem.ids.lookup(op->getResult(0));
    if (llvm::isa<nn::ReduceOp>(op)) {
      const std::vector<core::AxisRef>& rows = shardings[from].dims[0].axes;
      if (!rows.empty() && !dividesAny(shardings[to], rows))
        return mlir::WalkResult::advance();
      op->emitError("expected one row per device of ")
          << describeValue(op->getOperand(0))
          << " with --train 0/1-adam, found a division along the axes of B; "
             "leave them out of the plan's overrides and the model's "
             "annotations";
      return mlir::WalkResult::interrupt();
    }
    auto name = op->getAttrOfType<mlir::StringAttr>(kOwnShareAttr);
    mlir::Operation* source = op->getOperand(0).getDefiningOp();
    if (!name || problem.graph.values[from].is_zero ||
        (source && source->hasTrait<mlir::OpTrait::ConstantLike>()) ||
        !core::Resolve(problem.graph, found->second, shardings)
             .operands[0]
             .unreduced.empty())
      return mlir::WalkResult::advance();
    (void)refuseGradient(op, name.getValue(), shardings[to].dims[0].axes,
                         axesOfSum(problem, shardings, from), plan);
    return mlir::WalkResult::interrupt();
  });
  return mlir::failure(walked.wasInterrupted());
}

}  // namespace partita::sharding
