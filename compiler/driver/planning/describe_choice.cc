// Derives the facts about a choice from the prices of the found plans.
#include "compiler/driver/planning/describe_choice.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "compiler/driver/planning/vary_plan.h"
#include "compiler/plan/names.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace partita::driver {
namespace {

using absl::StatusOr;
using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Value;

constexpr size_t kAlternatives = 8;
constexpr double kGiga = 1e9;

Object toJson(const PricedPlan& plan) {
  return Object{{"division", describePlan(plan.plan)},
                {"step_seconds", plan.seconds()},
                {"memory_bytes", plan.price.memory_bytes},
                {"composed", plan.composed},
                {"text", plan.text}};
}

std::string whyOther(const PricedPlan& chosen, const PricedPlan& other) {
  std::map<std::string, double> difference = partsOf(other);
  for (const auto& [name, seconds] : partsOf(chosen))
    difference[name] -= seconds;
  std::vector<std::pair<double, std::string>> changes;
  for (const auto& [name, seconds] : difference)
    if (const double change = seconds / chosen.seconds();
        std::abs(change) >= 0.002)
      changes.push_back({change, name});
  llvm::sort(changes, [](const auto& a, const auto& b) {
    return std::abs(a.first) > std::abs(b.first);
  });
  std::string text;
  for (const auto& [change, name] : llvm::ArrayRef(changes).take_front(3))
    text += (text.empty() ? "" : ", ") + name +
            llvm::formatv(" {0}{1:f1} %", change > 0 ? "+" : "", 100 * change)
                .str();
  return text.empty() ? "as long" : text;
}

// One row per function of the program. Repeated layers share a function.
Array kindsOf(const PricedPlan& plan) {
  struct Kind {
    double calls = 0, seconds = 0, collectives = 0;
  };
  std::map<std::string, Kind> kinds;
  for (const simulator::OperationTotal& total :
       plan.price.simulation.operations) {
    Kind& kind = kinds[total.function];
    kind.calls = std::max(kind.calls, total.calls);
    kind.seconds += total.seconds;
    if (total.group > 0 || total.kind == "await")
      kind.collectives += total.seconds;
  }
  std::vector<std::pair<std::string, Kind>> sorted(kinds.begin(), kinds.end());
  llvm::stable_sort(sorted, [](const auto& a, const auto& b) {
    return a.second.seconds > b.second.seconds;
  });
  Array rows;
  for (const auto& [name, kind] : sorted)
    rows.push_back(Object{{"name", name},
                          {"calls", kind.calls},
                          {"seconds", kind.seconds},
                          {"collectives_seconds", kind.collectives}});
  return rows;
}

class Description {
 public:
  Description(const PlanRequest& request, const FoundPlans& found,
              PlanPricer& pricer)
      : request_(request), found_(found), pricer_(pricer) {}

  Value run() {
    const PricedPlan& chosen = best();
    Object facts = toJson(chosen);
    Object parts;
    for (const auto& [name, seconds] : partsOf(chosen)) parts[name] = seconds;
    Array alternatives;
    for (const PricedPlan* other : llvm::ArrayRef(found_.plans).drop_front()) {
      if (alternatives.size() == kAlternatives || !other->fits) break;
      Object row = toJson(*other);
      row["slower"] = other->seconds() / chosen.seconds() - 1;
      // Composed prices have other parts, so they are compared with each other.
      const PricedPlan* alike =
          other->composed ? pricer_.compose(chosen.plan) : &chosen;
      row["why"] = alike ? whyOther(*alike, *other) : "priced by layer kinds";
      alternatives.push_back(std::move(row));
    }
    facts["kind"] = "plan";
    facts["undivided"] =
        chosen.plan.shard.empty() && chosen.plan.mesh.Size() > 1;
    facts["cluster"] = request_.cluster.name;
    facts["devices"] = request_.cluster.devices;
    facts["target"] = pricer_.options().target;
    facts["train"] = pricer_.options().train.optimizer;
    facts["batch"] = found_.batch;
    facts["because"] = found_.because;
    facts["parts"] = std::move(parts);
    facts["kinds"] = kindsOf(chosen);
    facts["bubble"] = chosen.price.simulation.Bubble();
    facts["exposed"] = chosen.price.simulation.Exposed();
    facts["binds"] = binds();
    facts["considered"] = found_.considered;
    facts["alternatives"] = std::move(alternatives);
    facts["gains"] = gains();
    facts["precisions"] = otherPrecisions();
    facts["compiled"] = pricer_.compiled();
    facts["priced_by_kinds"] = pricer_.composed();
    facts["not_compiled"] = pricer_.failed();
    facts["too_slow"] = pricer_.tooSlow();
    facts["output"] = request_.output;
    int64_t loops = 0;
    mlir::ModuleOp model = request_.model;
    model.walk([&](nn::LoopOp) { ++loops; });
    if (loops > 0) facts["loops"] = loops;
    return facts;
  }

 private:
  const PricedPlan& best() const { return *found_.plans.front(); }

  std::string binds() const {
    if (pricer_.memoryLimit() < 1.05 * best().price.memory_bytes)
      return "memory";
    const auto parts = partsOf(best());
    const auto most = std::max_element(
        parts.begin(), parts.end(),
        [](const auto& a, const auto& b) { return a.second < b.second; });
    return llvm::formatv("{0}, {1:f0} % of the step", most->first,
                         100 * most->second / best().seconds())
        .str();
  }

  // Seconds that the same program saves on slightly better hardware.
  Array gains() const {
    Array rows;
    const auto add = [&](const std::string& what,
                         const planner::Cluster& cluster) {
      StatusOr<double> seconds = pricer_.secondsOn(best(), cluster);
      if (seconds.ok())
        rows.push_back(Object{{"what", what},
                              {"saved_seconds", best().seconds() - *seconds}});
    };
    for (size_t i = 0; i < request_.cluster.levels.size(); ++i) {
      planner::Cluster cluster = request_.cluster;
      cluster.levels[i].bandwidth += kGiga;
      add("1 GB/s more on " + cluster.levels[i].name, cluster);
    }
    planner::Cluster cluster = request_.cluster;
    cluster.device.memory_bandwidth += kGiga;
    add("1 GB/s more of memory bandwidth", cluster);
    return rows;
  }

  bool hasProducts(plan::Precision precision) const {
    return request_.cluster.device.peak[static_cast<size_t>(precision)] > 0;
  }

  // The chosen plan in f32 and bf16, except its own precision.
  Array otherPrecisions() {
    Array rows;
    const plan::Precision chosen =
        best().plan.precision.value_or(plan::Precision::kF32);
    for (const plan::Precision precision :
         {plan::Precision::kF32, plan::Precision::kBF16}) {
      if (precision == chosen || !hasProducts(precision)) continue;
      plan::Plan other = best().plan;
      other.precision = precision;
      if (const PricedPlan* priced = pricer_.rank(other))
        rows.push_back(Object{
            {"composed", priced->composed},
            {"precision", plan::NameOf(plan::PrecisionNames(), precision)},
            {"step_seconds", priced->seconds()},
            {"memory_bytes", priced->price.memory_bytes},
            {"fits", priced->fits}});
    }
    return rows;
  }

  const PlanRequest& request_;
  const FoundPlans& found_;
  PlanPricer& pricer_;
};

}  // namespace

std::map<std::string, double> partsOf(const PricedPlan& plan) {
  std::map<std::string, double> parts;
  double sum = 0;
  for (const simulator::OperationTotal& total :
       plan.price.simulation.operations) {
    const bool product = total.kind == "product" || total.kind == "convolution";
    const bool kernel =
        total.kind == "kernel" || total.kind == "copy" || total.kind == "call";
    const bool sends = total.kind == "receive" || total.kind == "send";
    parts[product  ? "products"
          : kernel ? "kernels"
          : sends  ? "transfers"
                   : "collectives"] += total.seconds;
    sum += total.seconds;
  }
  parts["bubble"] = std::max(0.0, plan.seconds() - sum);
  return parts;
}

Value describeChoice(const PlanRequest& request, const FoundPlans& found,
                     PlanPricer& pricer) {
  return Description(request, found, pricer).run();
}

}  // namespace partita::driver
