// Tables of collectives and paddings; trials of plans with one entry or
// override less.
#include "compiler/driver/explain.h"

#include <set>

#include "compiler/driver/model_phases.h"
#include "compiler/driver/session.h"
#include "compiler/partition/collective_report.h"
#include "compiler/partition/padding_report.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "mlir/IR/OwningOpRef.h"
#include "runtime/base/quantity.h"

namespace partita::driver {
namespace {

using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::success;
using partition::CollectiveUse;
using partition::Padding;

LogicalResult runPhases(mlir::ModuleOp module, const std::vector<Phase>& phases,
                        Fault& fault) {
  for (const Phase& phase : phases)
    if (mlir::failed(runPhase(module, phase, fault))) return failure();
  return success();
}

// What a plan costs a simplified module.
struct Costs {
  std::vector<CollectiveUse> collectives;
  std::vector<Padding> paddings;
};

FailureOr<Costs> costsUnder(mlir::ModuleOp module, const plan::Plan& plan,
                            Fault& fault) {
  mlir::OwningOpRef<mlir::ModuleOp> copy(module.clone());
  std::vector<Phase> phases = divideModel(plan);
  const Phase partitioning = std::move(phases.back());
  phases.pop_back();
  if (mlir::failed(runPhases(*copy, phases, fault))) return failure();
  auto paddings = partition::listPaddings(*copy);
  if (mlir::failed(paddings) ||
      mlir::failed(runPhase(*copy, partitioning, fault)))
    return failure();
  auto uses = partition::listCollectives(*copy);
  if (mlir::failed(uses)) return failure();
  return Costs{std::move(*uses), std::move(*paddings)};
}

std::string keyOf(const CollectiveUse& use) {
  return use.kind + "|" + use.axes + "|" + describe(use.loc);
}

std::string keyOf(const Padding& padding) {
  return llvm::formatv("{0}|{1}|{2}|{3}|{4}", padding.name, padding.size,
                       padding.block, padding.axes, padding.priority);
}

std::string textOf(const plan::Plan& plan, const plan::Entry& entry,
                   const plan::Division& division) {
  const std::string scope =
      entry.at.empty() ? "" : " at " + llvm::join(entry.at, ", ");
  return division.dimension + ": " + core::ToString(plan.mesh, division.axes) +
         scope + " (" + plan::Where(plan, division.where) + ")";
}

std::string textOf(const plan::Plan& plan, const plan::Override& override) {
  return "the override of '" + override.tensor + "' (" +
         plan::Where(plan, override.where) + ")";
}

// The plan's divisions and overrides, each with the costs that remain without
// it.
class Trials {
 public:
  static FailureOr<Trials> run(mlir::ModuleOp module, const plan::Plan& plan,
                               Fault& fault) {
    Trials trials;
    for (auto [number, entry] : llvm::enumerate(plan.shard))
      for (auto [i, division] : llvm::enumerate(entry.divisions)) {
        plan::Plan less = plan;
        auto& divisions = less.shard[number].divisions;
        divisions.erase(divisions.begin() + i);
        if (mlir::failed(
                trials.add(module, textOf(plan, entry, division), less, fault)))
          return failure();
      }
    for (size_t i = 0; i < plan.overrides.size(); ++i) {
      plan::Plan less = plan;
      less.overrides.erase(less.overrides.begin() + i);
      if (mlir::failed(
              trials.add(module, textOf(plan, plan.overrides[i]), less, fault)))
        return failure();
    }
    return trials;
  }

  // The change that concerns least (an override is of one tensor, a later
  // division gives way to earlier ones) without which the cost is not there;
  // empty: none alone.
  template <typename Cost>
  std::string removing(const Cost& cost) const {
    for (size_t i = trials_.size(); i-- > 0;)
      if (trials_[i].left.count(keyOf(cost)) == 0) return trials_[i].name;
    return "";
  }

 private:
  struct Trial {
    std::string name;
    std::set<std::string> left;
  };

  LogicalResult add(mlir::ModuleOp module, std::string name,
                    const plan::Plan& less, Fault& fault) {
    // What a part of the plan alone leaves undone, nobody asked for.
    mlir::ScopedDiagnosticHandler quiet(
        module.getContext(), [](mlir::Diagnostic& diagnostic) {
          return success(diagnostic.getSeverity() !=
                         mlir::DiagnosticSeverity::Error);
        });
    auto costs = costsUnder(module, less, fault);
    if (mlir::failed(costs)) return failure();
    Trial trial{std::move(name), {}};
    for (const CollectiveUse& use : costs->collectives)
      trial.left.insert(keyOf(use));
    for (const Padding& padding : costs->paddings)
      trial.left.insert(keyOf(padding));
    trials_.push_back(std::move(trial));
    return success();
  }

  std::vector<Trial> trials_;
};

// Whoever divides the padded dimension: of an entry the division of its name,
// else the one that has its axes.
std::string causeOf(const Padding& padding, const plan::Plan& plan) {
  const auto uses = [&](llvm::ArrayRef<core::AxisRef> axes) {
    return padding.axes.find(core::ToString(plan.mesh, axes)) !=
           std::string::npos;
  };
  if (padding.priority == 0) {
    for (const plan::Override& override : plan.overrides)
      for (const core::DimSharding& dim : override.sharding.dims)
        if (!dim.axes.empty() && uses(dim.axes)) return textOf(plan, override);
    return "the model's annotation";
  }
  const plan::Division* cause = nullptr;
  const plan::Entry& entry = plan.shard[padding.priority - 1];
  for (const plan::Division& division : entry.divisions) {
    const bool is_named =
        llvm::StringRef(padding.name).starts_with(division.dimension);
    if (uses(division.axes) && (cause == nullptr || is_named))
      cause = &division;
  }
  return cause == nullptr ? "" : textOf(plan, entry, *cause);
}

// The nearest sizes that need no padding.
std::string fittingSizes(const Padding& padding) {
  const int64_t units = padding.size / padding.unit;
  int64_t devices = std::min(padding.devices - 1, units);
  while (devices > 1 && units % devices != 0) --devices;
  return llvm::formatv(
      "{0} rows instead of {1}, or {2} device{3} instead of {4}",
      llvm::alignTo(units, padding.devices) * padding.unit, padding.size,
      devices, devices == 1 ? "" : "s", padding.devices);
}

llvm::json::Object toJson(const CollectiveUse& use, const Trials& trials) {
  return llvm::json::Object{
      {"kind", use.kind},   {"axes", use.axes},
      {"group", use.group}, {"bytes", use.bytes},
      {"times", use.times}, {"where", describe(use.loc)},
      {"why", use.why},     {"without", trials.removing(use)}};
}

llvm::json::Object toJson(const Padding& padding, const plan::Plan& plan,
                          const Trials& trials) {
  return llvm::json::Object{{"dimension", padding.name},
                            {"size", padding.size},
                            {"local", padding.block},
                            {"axes", padding.axes},
                            {"devices", padding.devices},
                            {"values", padding.values},
                            {"bytes", padding.bytes},
                            {"most", llvm::formatv("dimension {0} of '{1}'",
                                                   padding.dim, padding.largest)
                                         .str()},
                            {"why", causeOf(padding, plan)},
                            {"without", trials.removing(padding)},
                            {"fits", fittingSizes(padding)}};
}

void printCollective(const llvm::json::Object& row, llvm::raw_ostream& stream) {
  stream << llvm::formatv(
      "\n{0} over {1} ({2} devices): {3} x {4}\n  at    {5}\n  why   {6}\n",
      *row.getString("kind"), *row.getString("axes"), *row.getInteger("group"),
      base::FormatBytes(*row.getInteger("bytes")), *row.getInteger("times"),
      *row.getString("where"), *row.getString("why"));
  if (auto without = row.getString("without"); !without->empty())
    stream << "  gone  without " << *without << "\n";
}

void printPadding(const llvm::json::Object& row, llvm::raw_ostream& stream) {
  llvm::StringRef name = *row.getString("dimension");
  stream << llvm::formatv(
      "\npadding of {0} over {1} ({2} devices): {3} rows to {4} on each, {5} "
      "of rows beyond the end in {6} values\n  most  in {7}\n  why   {8}\n"
      "  gone  with {9}",
      name.empty() ? "a dimension without name" : name, *row.getString("axes"),
      *row.getInteger("devices"), *row.getInteger("size"),
      *row.getInteger("local"), base::FormatBytes(*row.getInteger("bytes")),
      *row.getInteger("values"), *row.getString("most"), *row.getString("why"),
      *row.getString("fits"));
  if (auto without = row.getString("without"); !without->empty())
    stream << ", or without " << *without;
  stream << "\n";
}

}  // namespace

FailureOr<llvm::json::Value> explainPlan(mlir::ModuleOp module,
                                         const plan::Plan& plan, Fault* fault) {
  Fault unasked = Fault::kUser;
  Fault& blamed = fault == nullptr ? unasked : *fault;
  mlir::OwningOpRef<mlir::ModuleOp> simplified(module.clone());
  if (mlir::failed(runPhases(*simplified, simplifyModel(), blamed)) ||
      mlir::failed(runPhases(
          *simplified,
          reducePrecision(plan.precision.value_or(plan::Precision::kF32)),
          blamed)))
    return failure();
  auto costs = costsUnder(*simplified, plan, blamed);
  if (mlir::failed(costs)) return failure();
  auto trials = Trials::run(*simplified, plan, blamed);
  if (mlir::failed(trials)) return failure();
  llvm::json::Array collectives, paddings;
  int64_t sent = 0, padded = 0;
  for (const CollectiveUse& use : costs->collectives) {
    sent += use.bytes * use.times;
    collectives.push_back(toJson(use, *trials));
  }
  for (const Padding& padding : costs->paddings) {
    padded += padding.bytes;
    paddings.push_back(toJson(padding, plan, *trials));
  }
  return llvm::json::Value(
      llvm::json::Object{{"mesh", plan::ToString(plan.mesh)},
                         {"devices", plan.mesh.Size()},
                         {"bytes", sent},
                         {"collectives", std::move(collectives)},
                         {"padded_bytes", padded},
                         {"paddings", std::move(paddings)}});
}

void printExplanation(const llvm::json::Value& explanation,
                      llvm::raw_ostream& stream) {
  const llvm::json::Object& facts = *explanation.getAsObject();
  stream << llvm::formatv(
      "mesh {0}: each of {1} devices sends {2} a step, and pads {3} at most\n",
      *facts.getString("mesh"), *facts.getInteger("devices"),
      base::FormatBytes(*facts.getInteger("bytes")),
      base::FormatBytes(*facts.getInteger("padded_bytes")));
  for (const llvm::json::Value& row : *facts.getArray("collectives"))
    printCollective(*row.getAsObject(), stream);
  for (const llvm::json::Value& row : *facts.getArray("paddings"))
    printPadding(*row.getAsObject(), stream);
}

}  // namespace partita::driver
