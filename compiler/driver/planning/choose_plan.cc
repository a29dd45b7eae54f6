// Estimates propose plans and prices choose: plans that look fast are compiled
// and simulated, and so are small variations of the best ones.
#include "compiler/driver/planning/choose_plan.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "compiler/driver/check_model.h"
#include "compiler/driver/planning/describe_choice.h"
#include "compiler/driver/planning/find_architecture.h"
#include "compiler/driver/planning/find_layers.h"
#include "compiler/driver/planning/price_plan.h"
#include "compiler/driver/planning/propose_plans.h"
#include "compiler/driver/planning/vary_experts.h"
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
using llvm::json::Value;
using Prices = std::vector<const PricedPlan*>;

// Relative difference of step times below which plans are the same.
constexpr double kSame = 1e-9;
// Proposals that are priced even if they exceed the effort.
constexpr size_t kMinProposals = 3;
// Composed prices that a search makes even if they exceed the effort: one takes
// about a second, and long programs, whose layers have many instructions, would
// end the search after a few.
constexpr int64_t kMinComposed = 24;
// Upper bound on plans compiled after composed prices have ranked them.
constexpr size_t kFinalists = 3;
// Pipelines are tried above these shares: of the memory limit, and of a step
// that is spent in collectives.
constexpr double kMemoryBoundShare = 0.8, kCommunicationBoundShare = 0.5;
// A plan is priced no further if its step takes longer than this times the best
// one.
constexpr double kMuchSlower = 1.1;

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
    Value facts = describeChoice(request_,
                                 {priced_, batch_, considered_,
                                  found_ || request_.by_layer ? "" : because_},
                                 pricer_);
    (*facts.getAsObject())["search_seconds"] = taken.count();
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
    if (found_ && request_.make && found_->repeated > 0) {
      const planner::Architecture& model = found_->architecture;
      pricer_.setLayers({request_.make, found_->repeated,
                         model.layers - found_->repeated, found_->batch,
                         4.0 * static_cast<double>(model.seq * model.hidden)});
    }
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
                        static_cast<double>(pricer_.memoryLimit()),
                        request_.fixed);
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
    const int composed_before = pricer_.composed();
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
    if (!found_ && !request_.fixed.pp && wantsPipelines(*found.front()))
      limit += addPipelines(found);
    climb(found, limit, composed_before);
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

  // Upper bound on the step, in seconds, of plans that are priced to the end.
  static double barOf(const Prices& found) {
    return found.size() < kMinProposals || !found.front()->fits
               ? std::numeric_limits<double>::infinity()
               : kMuchSlower * found.front()->seconds();
  }

  const PricedPlan* add(const plan::Plan& plan, Prices& found) {
    const PricedPlan* priced = pricer_.rank(withLimit(plan), barOf(found));
    if (priced && !llvm::is_contained(found, priced)) found.push_back(priced);
    llvm::stable_sort(found, better);
    return priced;
  }

  bool isMemoryBound(const PricedPlan& plan) const {
    return static_cast<double>(plan.price.memory_bytes) >
           kMemoryBoundShare * static_cast<double>(pricer_.memoryLimit());
  }

  // Moves the optimizer's states to the host only if nothing fits: they travel
  // to the device and back in every step.
  bool wantsOffload(const PricedPlan& plan) const {
    return !plan.fits && request_.cluster.device.host_bandwidth > 0;
  }

  // True if memory or communication limits the speed of the plan.
  bool wantsPipelines(const PricedPlan& plan) const {
    const auto parts = partsOf(plan);
    const auto exchanged = parts.find("collectives");
    return isMemoryBound(plan) ||
           (exchanged != parts.end() &&
            exchanged->second > kCommunicationBoundShare * plan.seconds());
  }

  // Adds pipelines of 2, 4, ... stages until one is no better than the one
  // before. Returns the instructions of their programs.
  int64_t addPipelines(Prices& found) {
    const int64_t start = pricer_.instructions();
    const PricedPlan* last = nullptr;
    for (const plan::Plan& plan :
         pipelinesLike(found.front()->plan, batch_, request_.fixed)) {
      const PricedPlan* priced = add(plan, found);
      if (!priced || (last && !better(priced, last))) break;
      last = priced;
    }
    return pricer_.instructions() - start;
  }

  // Hill climbing: prices the variations of the best plan until none is better
  // or the effort is spent. `composed_before`: prices composed before this
  // search.
  void climb(Prices& found, int64_t limit, int composed_before) {
    std::set<const PricedPlan*> varied;
    const auto isSpent = [&] {
      return pricer_.instructions() >= limit &&
             (!found.front()->composed ||
              pricer_.composed() - composed_before >= kMinComposed);
    };
    while (!isSpent() && varied.insert(found.front()).second) {
      const PricedPlan* from = found.front();
      std::vector<plan::Plan> plans =
          variationsOf(from->plan, batch_, request_.fixed, wantsOffload(*from));
      llvm::append_range(
          plans, expertsOtherwise(from->plan,
                                  found_ ? found_->architecture.experts : 0,
                                  request_.fixed));
      for (const plan::Plan& plan : plans) {
        if (isSpent()) return;
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
