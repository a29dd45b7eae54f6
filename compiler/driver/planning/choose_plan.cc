// Estimates propose plans and prices choose: plans that look fast are compiled
// and simulated, and so are small variations of the best ones.
#include "compiler/driver/planning/choose_plan.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <set>

#include "compiler/driver/check_model.h"
#include "compiler/driver/planning/find_architecture.h"
#include "compiler/driver/planning/find_layers.h"
#include "compiler/driver/planning/price_plan.h"
#include "compiler/driver/planning/propose_plans.h"
#include "compiler/driver/planning/vary_plan.h"
#include "compiler/plan/names.h"
#include "compiler/planner/transformer/software.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FormatVariadic.h"
#include "mlir/IR/Diagnostics.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/quantity.h"

namespace partita::driver {
namespace {

using absl::StatusOr;
using llvm::StringRef;
using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Value;
using Prices = std::vector<const PricedPlan*>;

constexpr size_t kAlternatives = 8;
// Relative difference of step times below which plans are the same.
constexpr double kSame = 1e-9;
// Proposals that are priced even if they exceed the effort.
constexpr size_t kMinProposals = 3;
// Upper bound on plans compiled after composed prices have ranked them.
constexpr size_t kFinalists = 3;
// Pipelines are tried above these shares: of the memory limit, and of a step
// that is spent in collectives.
constexpr double kMemoryBoundShare = 0.8, kCommunicationBoundShare = 0.5;
constexpr double kGiga = 1e9;

bool better(const PricedPlan* a, const PricedPlan* b) {
  if (a->fits != b->fits) return a->fits;
  if (!a->fits) return a->price.memory_bytes < b->price.memory_bytes;
  if (std::abs(a->seconds() - b->seconds()) > kSame * b->seconds())
    return a->seconds() < b->seconds();
  return a->price.memory_bytes < b->price.memory_bytes;
}

bool same(const PricedPlan* a, const PricedPlan* b) {
  return std::abs(a->seconds() - b->seconds()) <= kSame * b->seconds() &&
         a->price.memory_bytes == b->price.memory_bytes;
}

class Chooser {
 public:
  explicit Chooser(const PlanRequest& request)
      : request_(request),
        pricer_(request.model, optionsOf(request), request.cluster,
                static_cast<int64_t>(request.memory > 0
                                         ? request.memory
                                         : request.cluster.device.room())) {}

  StatusOr<Value> run() {
    const auto start = std::chrono::steady_clock::now();
    if (absl::Status status = readModel(); !status.ok()) return status;
    absl::Status first_error;
    for (const plan::Precision precision : request_.precisions)
      first_error.Update(search(precision));
    // An error in one precision counts only if no other precision has a plan.
    if (priced_.empty() && !first_error.ok()) return first_error;
    if (priced_.empty())
      return absl::FailedPreconditionError(
          llvm::formatv(
              "expected a division that compiles, found none of the {0} that "
              "were tried: write a plan by hand and read what partita compile "
              "reports about it; the last one failed with: {1}",
              pricer_.failed(), pricer_.problem())
              .str());
    if (!best()->fits) return nothingFits();
    const std::chrono::duration<double> taken =
        std::chrono::steady_clock::now() - start;
    Value facts = describe();
    Object& object = *facts.getAsObject();
    object["search_seconds"] = taken.count();
    if (!request_.output.empty())
      if (absl::Status status =
              base::WriteFileAtomically(request_.output, best()->text);
          !status.ok())
        return status;
    return facts;
  }

 private:
  static CompileOptions optionsOf(const PlanRequest& request) {
    CompileOptions options = request.options;
    if (options.train.optimizer.empty()) options.train.optimizer = "adamw";
    if (options.target.empty())
      options.target = targetOf(request.cluster.device);
    return options;
  }

  mlir::ModuleOp model() const { return request_.model; }
  const PricedPlan* best() const { return priced_.front(); }

  // Finds the sizes of a transformer; other models are planned by their layers.
  absl::Status readModel() {
    if (!request_.by_layer) {
      mlir::ScopedDiagnosticHandler kept(model().getContext(),
                                         [&](mlir::Diagnostic& diagnostic) {
                                           if (because_.empty())
                                             because_ = diagnostic.str();
                                           return mlir::success();
                                         });
      auto found = findArchitecture(model());
      if (mlir::succeeded(found)) found_ = *std::move(found);
    }
    if (found_) batch_ = found_->batch;
    if (found_ && request_.make &&
        found_->architecture.kind != planner::ModelKind::kT5) {
      const planner::Architecture& model = found_->architecture;
      pricer_.setLayers({request_.make, model.layers, found_->batch,
                         4.0 * static_cast<double>(model.seq * model.hidden)});
    }
    if (!found_ && request_.has_fixed)
      return absl::InvalidArgumentError(
          "--fix: expected none where each layer is divided in its own way" +
          (because_.empty() ? "" : ": " + because_));
    return absl::OkStatus();
  }

  // Plans worth pricing in this precision.
  StatusOr<Proposals> propose(plan::Precision precision) {
    if (found_) {
      planner::Request asked;
      asked.architecture = found_->architecture;
      asked.cluster = request_.cluster;
      asked.batch = found_->batch;
      asked.precision = precision;
      asked.memory = request_.memory;
      asked.fixed = request_.fixed;
      planner::Software software = planner::OwnSoftware();
      // The libraries' memory is the workspace of products on a GPU.
      if (!asked.cluster.device.is_gpu) software.libraries = 0;
      asked.software = &software;
      StatusOr<Proposals> proposals = proposePlans(asked, found_->names);
      // Long programs with zero-bubble schedules have no composed price, so the
      // same divisions are proposed with 1F1B, too.
      if (!proposals.ok() || asked.fixed.schedules.size() < 2 ||
          llvm::none_of(proposals->plans, [&](const plan::Plan& plan) {
            return pricer_.isLong(plan);
          }))
        return proposals;
      asked.fixed.schedules = {planner::PipelineSchedule::k1F1B};
      StatusOr<Proposals> simple = proposePlans(asked, found_->names);
      if (simple.ok())
        proposals->plans.insert(proposals->plans.begin(), simple->plans.begin(),
                                simple->plans.end());
      return proposals;
    }
    Fault fault = Fault::kUser;
    auto layers = findLayers(model(), precision, fault);
    if (mlir::failed(layers))
      return absl::InvalidArgumentError(
          "expected a model of layers that can be told apart");
    batch_ = layers->batch;
    return proposePlans(*layers, request_.cluster, precision,
                        static_cast<double>(pricer_.memoryLimit()));
  }

  absl::Status search(plan::Precision precision) {
    StatusOr<Proposals> proposals = propose(precision);
    if (!proposals.ok()) return proposals.status();
    if (request_.batch > 0 && request_.batch != batch_)
      return absl::InvalidArgumentError(
          llvm::formatv("--batch: expected the model's own, {0}, found {1}: "
                        "--dim batch={1} gives the model another",
                        batch_, request_.batch)
              .str());
    considered_ += proposals->considered;
    const int64_t start = pricer_.instructions();
    int64_t limit = start + request_.effort;
    Prices found;
    for (const plan::Plan& plan : proposals->plans) {
      if (found.size() >= kMinProposals &&
          pricer_.instructions() > start + request_.effort / 2)
        break;
      add(plan, found);
    }
    // Only zero-bubble schedules of long programs were proposed, whose prices
    // cannot be composed. Compile the first.
    for (const plan::Plan& plan : proposals->plans)
      if (found.empty() && pricer_.canCompile(plan))
        if (const PricedPlan* exact = pricer_.price(withLimit(plan)))
          found.push_back(exact);
    if (found.empty()) return absl::OkStatus();
    // In addition to the effort, which is for the proposed plans.
    if (!found_ && wantsPipelines(*found.front())) limit += addPipelines(found);
    climb(found, limit);
    confirm(found);
    for (const PricedPlan* each : found) insert(each);
    return absl::OkStatus();
  }

  // Adds the requested memory limit, if there is one, to the plan.
  plan::Plan withLimit(plan::Plan plan) const {
    if (request_.memory > 0)
      plan.memory = static_cast<int64_t>(request_.memory);
    return plan;
  }

  const PricedPlan* add(const plan::Plan& plan, Prices& found) {
    const PricedPlan* priced = pricer_.rank(withLimit(plan));
    if (priced && !llvm::is_contained(found, priced)) found.push_back(priced);
    llvm::stable_sort(found, better);
    return priced;
  }

  // True if memory or communication limits the speed of the plan.
  bool wantsPipelines(const PricedPlan& plan) const {
    const auto parts = partsOf(plan);
    const auto exchanged = parts.find("collectives");
    return static_cast<double>(plan.price.memory_bytes) >
               kMemoryBoundShare * static_cast<double>(pricer_.memoryLimit()) ||
           (exchanged != parts.end() &&
            exchanged->second > kCommunicationBoundShare * plan.seconds());
  }

  // Adds pipelines of 2, 4, ... stages until one is no better than the one
  // before. Returns the instructions of their programs.
  int64_t addPipelines(Prices& found) {
    const int64_t start = pricer_.instructions();
    const PricedPlan* last = nullptr;
    for (const plan::Plan& plan : pipelinesLike(found.front()->plan, batch_)) {
      const PricedPlan* priced = add(plan, found);
      if (!priced || (last && !better(priced, last))) break;
      last = priced;
    }
    return pricer_.instructions() - start;
  }

  // Hill climbing: prices the variations of the best plan until none is better
  // or the effort is spent.
  void climb(Prices& found, int64_t limit) {
    std::set<const PricedPlan*> varied;
    while (pricer_.instructions() < limit &&
           varied.insert(found.front()).second) {
      const PricedPlan* from = found.front();
      for (const plan::Plan& plan :
           variationsOf(from->plan, batch_, request_.fixed)) {
        if (pricer_.instructions() >= limit) return;
        const PricedPlan* priced = add(plan, found);
        if (priced && found.front() == priced) break;
      }
    }
  }

  // Compiles the best plans with composed prices until a compiled plan is the
  // best.
  void confirm(Prices& found) {
    for (size_t i = 0; i < kFinalists && found.front()->composed; ++i) {
      const PricedPlan* first = found.front();
      if (!pricer_.canCompile(first->plan)) return;
      const PricedPlan* exact = pricer_.price(first->plan);
      found.erase(found.begin());
      if (exact) found.push_back(exact);
      llvm::stable_sort(found, better);
      if (found.empty()) return;
    }
    // Choose a compiled price, unless only composed ones fit.
    const auto exact = llvm::find_if(
        found, [](const PricedPlan* plan) { return !plan->composed; });
    if (exact != found.end() && (*exact)->fits == found.front()->fits)
      found.erase(found.begin(), exact);
  }

  // Leaves out a plan with the same step time and memory as another.
  void insert(const PricedPlan* plan) {
    for (const PricedPlan* other : priced_)
      if (same(plan, other)) return;
    priced_.insert(llvm::upper_bound(priced_, plan, better), plan);
  }

  absl::Status nothingFits() const {
    const int64_t limit = pricer_.memoryLimit(),
                  least = best()->price.memory_bytes;
    return absl::ResourceExhaustedError(
        llvm::formatv(
            "expected a division within {0} a device, found none: the least of "
            "{1} that were priced is {2}, which is {3} more ({4}); raise "
            "--memory, or use more devices",
            base::FormatBytes(limit), pricer_.compiled() + pricer_.composed(),
            base::FormatBytes(least), base::FormatBytes(least - limit),
            describePlan(best()->plan))
            .str());
  }

  static Object toJson(const PricedPlan& plan) {
    return Object{{"division", describePlan(plan.plan)},
                  {"step_seconds", plan.seconds()},
                  {"memory_bytes", plan.price.memory_bytes},
                  {"composed", plan.composed},
                  {"text", plan.text}};
  }

  // Mean seconds over all devices; the parts add up to the step.
  static std::map<std::string, double> partsOf(const PricedPlan& plan) {
    std::map<std::string, double> parts;
    double sum = 0;
    for (const simulator::OperationTotal& total :
         plan.price.simulation.operations) {
      const bool product =
          total.kind == "product" || total.kind == "convolution";
      const bool kernel = total.kind == "kernel" || total.kind == "copy" ||
                          total.kind == "call";
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

  static std::string whyOther(const PricedPlan& chosen,
                              const PricedPlan& other) {
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
  static Array kindsOf(const PricedPlan& plan) {
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
    std::vector<std::pair<std::string, Kind>> sorted(kinds.begin(),
                                                     kinds.end());
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

  std::string binds() const {
    if (pricer_.memoryLimit() < 1.05 * best()->price.memory_bytes)
      return "memory";
    const auto parts = partsOf(*best());
    const auto most = std::max_element(
        parts.begin(), parts.end(),
        [](const auto& a, const auto& b) { return a.second < b.second; });
    return llvm::formatv("{0}, {1:f0} % of the step", most->first,
                         100 * most->second / best()->seconds())
        .str();
  }

  // Seconds that the same program saves on slightly better hardware.
  Array gains() const {
    Array rows;
    const auto add = [&](const std::string& what,
                         const planner::Cluster& cluster) {
      StatusOr<double> seconds = pricer_.secondsOn(*best(), cluster);
      if (seconds.ok())
        rows.push_back(Object{{"what", what},
                              {"saved_seconds", best()->seconds() - *seconds}});
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
        best()->plan.precision.value_or(plan::Precision::kF32);
    for (const plan::Precision precision :
         {plan::Precision::kF32, plan::Precision::kBF16}) {
      if (precision == chosen || !hasProducts(precision)) continue;
      plan::Plan other = best()->plan;
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

  Value describe() {
    const PricedPlan& chosen = *best();
    Object facts = toJson(chosen);
    Object parts;
    for (const auto& [name, seconds] : partsOf(chosen)) parts[name] = seconds;
    Array alternatives;
    for (const PricedPlan* other : llvm::ArrayRef(priced_).drop_front()) {
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
    facts["target"] = optionsOf(request_).target;
    facts["train"] = optionsOf(request_).train.optimizer;
    facts["batch"] = batch_;
    facts["because"] = found_ || request_.by_layer ? "" : because_;
    facts["parts"] = std::move(parts);
    facts["kinds"] = kindsOf(chosen);
    facts["bubble"] = chosen.price.simulation.Bubble();
    facts["exposed"] = chosen.price.simulation.Exposed();
    facts["binds"] = binds();
    facts["considered"] = considered_;
    facts["alternatives"] = std::move(alternatives);
    facts["gains"] = gains();
    facts["precisions"] = otherPrecisions();
    facts["compiled"] = pricer_.compiled();
    facts["priced_by_kinds"] = pricer_.composed();
    facts["not_compiled"] = pricer_.failed();
    facts["output"] = request_.output;
    return facts;
  }

  const PlanRequest& request_;
  PlanPricer pricer_;
  std::optional<FoundModel> found_;
  std::string because_;  // why it is no transformer of identical layers
  int64_t batch_ = 1, considered_ = 0;
  Prices priced_;  // all different, the best first
};

}  // namespace

StatusOr<Value> choosePlan(const PlanRequest& request) {
  return Chooser(request).run();
}

}  // namespace partita::driver
