// Annotations outrank entries. Annotations must agree with each other.
#include "compiler/sharding/annotations.h"

#include <optional>

#include "compiler/core/projection.h"
#include "compiler/plan/glob.h"
#include "compiler/sharding/convert.h"
#include "compiler/sharding/near_names.h"
#include "compiler/sharding/parameter_views.h"
#include "dialects/dist/annotations.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::sharding {
namespace {

using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::Operation;
using mlir::success;
using mlir::Value;
using mlir::func::CallOp;
using mlir::func::FuncOp;

std::string dimension(size_t number) {
  return "dimension " + std::to_string(number);
}

// Returns the first axis that is used twice or is not a valid part of its axis.
std::optional<std::string> flaw(const core::Mesh& mesh,
                                const core::Sharding& sharding) {
  std::vector<core::AxisRef> used;
  auto check = [&](const std::vector<core::AxisRef>& axes)
      -> std::optional<std::string> {
    for (const core::AxisRef& axis : axes) {
      const int64_t size = mesh.axes[axis.axis].size;
      if (axis.pre < 1 || axis.size < 1 || size % (axis.pre * axis.size) != 0)
        return "axis '" + mesh.axes[axis.axis].name + "' of size " +
               std::to_string(size) + " has no part " +
               core::ToString(mesh, axis);
      if (core::OverlapAny(axis, used))
        return "axis '" + core::ToString(mesh, axis) + "' is used twice";
      used.push_back(axis);
    }
    return std::nullopt;
  };
  for (const core::DimSharding& dim : sharding.dims)
    if (auto found = check(dim.axes)) return found;
  for (const auto* axes : {&sharding.replicated, &sharding.unreduced})
    if (auto found = check(*axes)) return found;
  return std::nullopt;
}

// Merges one dimension. Returns the contradiction; empty if there is none.
std::string mergeDims(const core::DimSharding& given,
                      const core::DimSharding& other, core::DimSharding& dim) {
  const core::AxesMatch match = core::MatchAxes(given.axes, other.axes);
  if (match.Conflict()) return "other axes are there";
  if (!match.rest_b.empty() && !given.open) return "it is closed there";
  if (!match.rest_a.empty() && !other.open)
    return "it is closed, with less, here";
  const bool longer = !match.rest_b.empty();
  if (match.Same() && given.block != 0 && other.block != 0 &&
      given.block != other.block)
    return "shards of " + std::to_string(given.block) + " rows are there";
  dim = longer ? other : given;
  if (match.Same() && dim.block == 0) dim.block = other.block;
  dim.open = given.open && other.open;
  return "";
}

// Returns the model's own annotation of a value; null if there is none.
dist::ShardingAttr annotationOf(Value value) {
  Operation* op = value.getDefiningOp();
  if (auto constraint = llvm::dyn_cast_or_null<dist::ConstraintOp>(op))
    return constraint.getSharding();
  if (auto reshard = llvm::dyn_cast_or_null<dist::ReshardOp>(op))
    return reshard.getTo();
  return shardingOf(value);
}

// Counts annotated operations, once per call of their function.
int64_t countAnnotated(mlir::ModuleOp module, FuncOp function,
                       llvm::DenseMap<Operation*, int64_t>& counts) {
  if (auto known = counts.find(function); known != counts.end())
    return known->second;
  int64_t count = 0;
  counts[function] = 0;  // for recursive calls
  function.walk([&](Operation* op) {
    count += op->hasAttr(dist::kShardingsAttr);
    if (auto call = llvm::dyn_cast<CallOp>(op))
      count += countAnnotated(
          module, module.lookupSymbol<FuncOp>(call.getCallee()), counts);
  });
  counts[function] = count;
  return count;
}

class Reader {
 public:
  Reader(mlir::ModuleOp module, const plan::Plan& plan, const Problem& problem)
      : module_(module), plan_(plan), problem_(problem) {}

  FailureOr<std::vector<core::Sharding>> run() {
    for (Value value : problem_.values) {
      shardings_.push_back(core::Replicated(
          llvm::cast<mlir::RankedTensorType>(value.getType()).getRank()));
      if (mlir::failed(annotate(value))) return failure();
    }
    sources_.resize(shardings_.size());
    for (const plan::Override& override : plan_.overrides)
      if (mlir::failed(apply(override))) return failure();
    return std::move(shardings_);
  }

 private:
  LogicalResult annotate(Value value) {
    dist::ShardingAttr attr = annotationOf(value);
    if (!attr) return success();
    auto sharding = toCore(attr, plan_.mesh);
    if (mlir::failed(sharding))
      return mlir::emitError(value.getLoc())
             << "expected an annotation on axes of the plan's mesh, found "
             << attr;
    shardings_.back() = std::move(*sharding);
    return success();
  }

  LogicalResult apply(const plan::Override& override) {
    auto main = module_.lookupSymbol<FuncOp>("main");
    bool found = false;
    for (mlir::BlockArgument argument : main.getArguments()) {
      auto name = main.getArgAttrOfType<mlir::StringAttr>(
          argument.getArgNumber(), nn::kNameAttr);
      if (!name || !plan::MatchesGlob(override.tensor, name.str())) continue;
      found = true;
      if (mlir::failed(apply(override, argument, name.str()))) return failure();
    }
    if (found) return success();
    return mlir::emitError(module_.getLoc())
           << plan::Where(plan_, override.where)
           << ": expected overrides to name parameters or inputs of the model, "
              "found '"
           << override.tensor << "', which matches none; similar names are "
           << nearNames({override.tensor}, argumentNames(main));
  }

  LogicalResult apply(const plan::Override& override,
                      mlir::BlockArgument argument, const std::string& name) {
    core::Sharding viewed;
    if (const std::string wrong =
            viewOverride(plan_.mesh, argument, override.sharding, viewed);
        !wrong.empty())
      return mlir::emitError(argument.getLoc())
             << plan::Where(plan_, override.where) << ": override of '" << name
             << "': " << wrong;
    const int id = problem_.ids.lookup(argument);
    core::Sharding merged;
    const std::string contradiction =
        mergeAnnotations(plan_.mesh, shardings_[id], viewed, merged);
    if (!contradiction.empty()) {
      const std::string other = sources_[id].empty()
                                    ? "the model's own annotation"
                                    : "the override at " + sources_[id];
      auto diagnostic = mlir::emitError(argument.getLoc());
      diagnostic << plan::Where(plan_, override.where)
                 << ": expected an override of '" << name
                 << "' that agrees with " << other << ", "
                 << core::ToString(plan_.mesh, shardings_[id]) << ", found "
                 << core::ToString(plan_.mesh, viewed) << ": " << contradiction
                 << "; change one of the two";
      if (sources_[id].empty())
        diagnostic.attachNote(argument.getLoc())
            << "the annotation is that of " << describeValue(argument);
      return diagnostic;
    }
    shardings_[id] = std::move(merged);
    sources_[id] = plan::Where(plan_, override.where);
    return success();
  }

  mlir::ModuleOp module_;
  const plan::Plan& plan_;
  const Problem& problem_;
  std::vector<core::Sharding> shardings_;
  std::vector<std::string> sources_;  // by value: the last override of it
};

}  // namespace

std::string mergeAnnotations(const core::Mesh& mesh,
                             const core::Sharding& given,
                             const core::Sharding& other,
                             core::Sharding& merged) {
  merged = core::Replicated(static_cast<int>(given.dims.size()));
  for (size_t i = 0; i < given.dims.size(); ++i) {
    const std::string wrong =
        mergeDims(given.dims[i], other.dims[i], merged.dims[i]);
    if (!wrong.empty()) return dimension(i) + ": " + wrong;
  }
  merged.replicated = given.replicated;
  for (const core::AxisRef& axis : other.replicated)
    if (!core::OverlapAny(axis, merged.replicated))
      merged.replicated.push_back(axis);
  if (!given.unreduced.empty() && !other.unreduced.empty() &&
      given.unreduced != other.unreduced)
    return "it is a sum over other axes there";
  merged.unreduced =
      given.unreduced.empty() ? other.unreduced : given.unreduced;
  return flaw(mesh, merged).value_or("");
}

LogicalResult checkMesh(mlir::ModuleOp module, const plan::Plan& plan) {
  if (module.getOps<dist::MeshOp>().empty()) return success();
  FailureOr<core::Mesh> own = meshOf(module);
  if (mlir::failed(own)) return failure();
  const std::string expected = plan::ToString(*own),
                    found = plan::ToString(plan.mesh);
  if (expected == found) return success();
  return module.emitError(
             "expected a plan for the mesh of the model's own annotations, ")
         << expected << ", found " << found
         << "; give that mesh, or import the model without its annotations "
            "(--onnx-configuration none, or --ignore-shardings)";
}

void reportLostAnnotations(mlir::ModuleOp module) {
  auto attr = module->getAttrOfType<mlir::IntegerAttr>(dist::kAnnotationsAttr);
  auto main = module.lookupSymbol<FuncOp>("main");
  if (!attr || !main) return;
  module->removeAttr(dist::kAnnotationsAttr);
  llvm::DenseMap<Operation*, int64_t> counts;
  const int64_t left = countAnnotated(module, main, counts);
  if (left >= attr.getInt()) return;
  mlir::emitRemark(main.getLoc())
      << attr.getInt() - left << " of the model's " << attr.getInt()
      << " annotations of values within it are not used: the values were "
         "merged or became part of larger operations, which are divided as "
         "their neighbours are";
}

FailureOr<std::vector<core::Sharding>> readAnnotations(mlir::ModuleOp module,
                                                       const plan::Plan& plan,
                                                       const Problem& problem) {
  return Reader(module, plan, problem).run();
}

LogicalResult checkGroups(const Problem& problem,
                          const std::vector<core::Sharding>& shardings) {
  for (const std::vector<int>& group : problem.graph.groups)
    for (int member : group) {
      const core::Sharding& first = shardings[group[0]];
      const core::Sharding& other = shardings[member];
      if (first.SamePlacement(other)) continue;
      const Value one = problem.values[group[0]];
      const Value two = problem.values[member];
      auto diagnostic = mlir::emitError(two.getLoc());
      diagnostic
          << "expected annotations that divide the values of a dist.group "
             "alike, found "
          << core::ToString(problem.graph.mesh, first) << " for "
          << describeValue(one) << " and "
          << core::ToString(problem.graph.mesh, other) << " for "
          << describeValue(two)
          << "; change the annotations that they come from, or take one of "
             "the two out of the group";
      diagnostic.attachNote(one.getLoc()) << "the other value of the group";
      return diagnostic;
    }
  return success();
}

}  // namespace partita::sharding
