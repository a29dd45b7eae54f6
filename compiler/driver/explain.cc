// Lists collectives and paddings as JSON and prints them as tables.
#include "compiler/driver/explain.h"

#include <map>
#include <set>
#include <tuple>

#include "compiler/driver/compilation.h"
#include "compiler/driver/plan_trials.h"
#include "compiler/driver/session.h"
#include "compiler/memory/overlap_report.h"
#include "dialects/nn/dialect.h"
#include "llvm/Support/FormatVariadic.h"
#include "mlir/IR/OwningOpRef.h"
#include "runtime/base/quantity.h"

namespace partita::driver {
namespace {

using mlir::failure;
using mlir::FailureOr;
using partition::CollectiveUse;
using partition::Padding;

// The part of the plan that divides the padded dimension. Within an entry, the
// division of this name is preferred to another one over the same axes.
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
  const plan::ShardedDimension* cause = nullptr;
  const plan::Entry& entry = plan.shard[padding.priority - 1];
  for (const plan::ShardedDimension& division : entry.dimensions) {
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

llvm::json::Object toJson(const CollectiveUse& use, const PlanTrials& trials) {
  return llvm::json::Object{
      {"kind", use.kind},   {"axes", use.axes},
      {"group", use.group}, {"bytes", use.bytes},
      {"times", use.times}, {"where", describe(use.loc)},
      {"why", use.why},     {"without", trials.removing(use)}};
}

llvm::json::Object toJson(const Padding& padding, const plan::Plan& plan,
                          const PlanTrials& trials) {
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

// Collectives of one kind, over the same axes, for one reason.
using CollectiveGroup = std::vector<const llvm::json::Object*>;

// Bytes per step.
int64_t bytesOf(const CollectiveGroup& rows) {
  int64_t bytes = 0;
  for (const llvm::json::Object* row : rows)
    bytes += *row->getInteger("bytes") * *row->getInteger("times");
  return bytes;
}

// Most bytes first.
std::vector<CollectiveGroup> groupByReason(const llvm::json::Array& rows) {
  std::vector<CollectiveGroup> groups;
  std::map<std::string, size_t> known;
  for (const llvm::json::Value& value : rows) {
    const llvm::json::Object& row = *value.getAsObject();
    std::string key;
    for (const char* field : {"kind", "axes", "why", "without"})
      key += row.getString(field)->str() + "|";
    auto [group, is_new] = known.try_emplace(key, groups.size());
    if (is_new) groups.emplace_back();
    groups[group->second].push_back(&row);
  }
  llvm::stable_sort(groups,
                    [](const CollectiveGroup& a, const CollectiveGroup& b) {
                      return bytesOf(a) > bytesOf(b);
                    });
  return groups;
}

std::string secondsText(double seconds) {
  if (seconds >= 1) return llvm::formatv("{0:F3} s", seconds).str();
  if (seconds >= 1e-3) return llvm::formatv("{0:F3} ms", seconds * 1e3).str();
  return llvm::formatv("{0:F1} us", seconds * 1e6).str();
}

// The exposed time of a group, ", 7.8 us exposed (1.2% of the step)"; empty if
// it is not known. The compiled program may join collectives of several
// reasons, which then have no time of their own.
std::string timeOf(const llvm::json::Object& row,
                   const llvm::json::Object* predicted) {
  if (predicted == nullptr) return "";
  std::string axes = row.getString("axes")->str();
  llvm::erase(axes, ' ');
  for (const llvm::json::Value& value : *predicted->getArray("collectives")) {
    const llvm::json::Object& found = *value.getAsObject();
    if (found.getString("kind") != row.getString("kind") ||
        *found.getString("axes") != axes ||
        found.getString("why") != row.getString("why"))
      continue;
    const double seconds = *found.getNumber("seconds"),
                 step = *predicted->getNumber("step_seconds");
    return llvm::formatv(", {0} exposed ({1:F1}% of the step)",
                         secondsText(seconds),
                         step > 0 ? 100 * seconds / step : 0)
        .str();
  }
  return "";
}

void printCollectives(const CollectiveGroup& rows,
                      const llvm::json::Object* predicted,
                      llvm::raw_ostream& stream) {
  const llvm::json::Object& first = *rows.front();
  int64_t times = 0;
  bool same_size = true;
  std::set<std::string> places;
  for (const llvm::json::Object* row : rows) {
    times += *row->getInteger("times");
    same_size &= row->getInteger("bytes") == first.getInteger("bytes");
    places.insert(row->getString("where")->str());
  }
  stream << llvm::formatv(
      "\n{0} over {1} ({2} devices): ", *first.getString("kind"),
      *first.getString("axes"), *first.getInteger("group"));
  if (same_size)
    stream << base::FormatBytes(*first.getInteger("bytes")) << " x " << times;
  else
    stream << base::FormatBytes(bytesOf(rows)) << " in " << times;
  stream << timeOf(first, predicted);
  stream << "\n  at    " << *first.getString("where");
  if (places.size() > 1)
    stream << " and " << places.size() - 1 << " more place"
           << (places.size() > 2 ? "s" : "");
  stream << "\n  why   " << *first.getString("why") << "\n";
  if (auto without = first.getString("without"); !without->empty())
    stream << "  gone  without " << *without << "\n";
}

void printOverlap(const llvm::json::Object& row, llvm::raw_ostream& stream) {
  stream << llvm::formatv("\nbeside other work: {0} of {1}",
                          *row.getString("kind"),
                          base::FormatBytes(*row.getInteger("bytes")));
  const int64_t times = *row.getInteger("times");
  if (times > 1) stream << ", " << times << " times";
  stream << "\n  while " << *row.getString("beside") << "\n";
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

// Collectives that run beside other work. Equal ones are one row.
FailureOr<llvm::json::Array> overlapsUnder(mlir::ModuleOp module,
                                           const plan::Plan& plan,
                                           const TrainOptions* train,
                                           Fault& fault) {
  // Dividing the model has already printed its warnings.
  mlir::ScopedDiagnosticHandler quiet(
      module.getContext(), [](mlir::Diagnostic& diagnostic) {
        return mlir::success(diagnostic.getSeverity() !=
                             mlir::DiagnosticSeverity::Error);
      });
  Compilation ordered(mlir::OwningOpRef<mlir::ModuleOp>(module.clone()),
                      optionsToJudge(plan, train), Milestone::kSimplified);
  if (mlir::failed(ordered.runTo(Milestone::kOrdered, fault))) return failure();
  std::map<std::tuple<std::string, int64_t, std::string>, int64_t> times;
  for (const memory::OverlapUse& use : memory::listOverlaps(ordered.module()))
    ++times[{use.kind, use.bytes, use.beside}];
  llvm::json::Array rows;
  for (const auto& [use, count] : times)
    rows.push_back(llvm::json::Object{{"kind", std::get<0>(use)},
                                      {"bytes", std::get<1>(use)},
                                      {"times", count},
                                      {"beside", std::get<2>(use)}});
  return rows;
}

}  // namespace

FailureOr<llvm::json::Value> explainPlan(mlir::ModuleOp module,
                                         const plan::Plan& plan,
                                         const TrainOptions* train,
                                         Fault* fault) {
  Fault unasked = Fault::kUser;
  Fault& blamed = fault == nullptr ? unasked : *fault;
  Compilation model(mlir::OwningOpRef<mlir::ModuleOp>(module.clone()),
                    optionsToJudge(plan, train));
  if (mlir::failed(model.runTo(Milestone::kSimplified, blamed)))
    return failure();
  mlir::ModuleOp simplified = model.module();
  auto costs = costsUnder(simplified, plan, train, blamed);
  if (mlir::failed(costs)) return failure();
  auto trials = PlanTrials::run(simplified, plan, train, blamed);
  if (mlir::failed(trials)) return failure();
  llvm::json::Array collectives, paddings;
  int64_t padded = 0;
  auto overlapped = overlapsUnder(simplified, plan, train, blamed);
  if (mlir::failed(overlapped)) return failure();
  for (const CollectiveUse& use : costs->collectives)
    collectives.push_back(toJson(use, *trials));
  for (const Padding& padding : costs->paddings) {
    padded += padding.bytes;
    paddings.push_back(toJson(padding, plan, *trials));
  }
  llvm::json::Object facts{{"mesh", plan::ToString(plan.mesh)},
                           {"devices", plan.mesh.Size()},
                           {"bytes", costs->most_sent},
                           {"collectives", std::move(collectives)},
                           {"overlapped", std::move(*overlapped)},
                           {"padded_bytes", padded},
                           {"paddings", std::move(paddings)}};
  int64_t loops = 0;
  simplified.walk([&](nn::LoopOp) { ++loops; });
  if (loops > 0) facts["loops"] = loops;
  return llvm::json::Value(std::move(facts));
}

void printExplanation(const llvm::json::Value& explanation,
                      llvm::raw_ostream& stream) {
  const llvm::json::Object& facts = *explanation.getAsObject();
  stream << llvm::formatv(
      "mesh {0}: each of {1} devices sends {2} a step and pads {3}, at most\n",
      *facts.getString("mesh"), *facts.getInteger("devices"),
      base::FormatBytes(*facts.getInteger("bytes")),
      base::FormatBytes(*facts.getInteger("padded_bytes")));
  const llvm::json::Object* predicted = facts.getObject("predicted");
  if (predicted)
    stream << "on " << *predicted->getString("cluster")
           << " a step is predicted to take "
           << secondsText(*predicted->getNumber("step_seconds")) << "\n";
  if (auto loops = facts.getInteger("loops"))
    stream << "loops whose number of iterations depends on data: " << *loops
           << ", counted as one iteration each\n";
  for (const CollectiveGroup& rows :
       groupByReason(*facts.getArray("collectives")))
    printCollectives(rows, predicted, stream);
  for (const llvm::json::Value& row : *facts.getArray("overlapped"))
    printOverlap(*row.getAsObject(), stream);
  std::vector<const llvm::json::Object*> paddings;
  for (const llvm::json::Value& row : *facts.getArray("paddings"))
    paddings.push_back(row.getAsObject());
  llvm::stable_sort(paddings, [](const auto* a, const auto* b) {
    return *a->getInteger("bytes") > *b->getInteger("bytes");
  });
  for (const llvm::json::Object* row : paddings) printPadding(*row, stream);
}

}  // namespace partita::driver
