// Compiles and simulates each plan once.
#include "compiler/driver/planning/price_plan.h"

#include "compiler/driver/compile.h"
#include "llvm/ADT/StringRef.h"
#include "mlir/IR/Diagnostics.h"
#include "runtime/program/program_generated.h"
#include "runtime/program/target.h"
#include "runtime/program/types.h"

namespace partita::driver {
namespace {

// Bounds on the layer calls in all ranks' programs. Up to kFewCalls, compiling
// is as fast as composing. Above kManyCalls, compiling is too slow for each
// plan of a search; above kMostCalls, for any plan.
constexpr int64_t kFewCalls = 64, kManyCalls = 800, kMostCalls = 4000;
// The composer compiles models of up to this many layers, so composing pays
// only for deeper ones.
constexpr int64_t kFewestLayers = 3;

int64_t countInstructions(const program::Program& program) {
  int64_t count = 0;
  for (const program::Function* function : *program.functions())
    count += program::SizeOrZero(function->body());
  return count;
}

}  // namespace

std::string targetOf(const planner::Device& device) {
  if (!device.is_gpu) return program::kCpuTarget;
  const auto cuda = [](const char* architecture) {
    return program::TargetText({program::kCudaTarget, architecture});
  };
  const llvm::StringRef name = device.name;
  // Hopper chips run sm_90a. Later chips run PTX of sm_90. Earlier chips have
  // no entry of their own in kernels/chips.cc.
  for (const char* hopper : {"h100", "h200", "h800", "gh200"})
    if (name.starts_with_insensitive(hopper)) return cuda("sm_90a");
  for (const char* blackwell : {"b200", "b300", "gb200", "gb300"})
    if (name.starts_with_insensitive(blackwell)) return cuda("sm_90");
  return cuda("sm_80");
}

PlanPricer::PlanPricer(mlir::ModuleOp imported, CompileOptions options,
                       planner::Cluster cluster, int64_t memory_bytes)
    : imported_(imported),
      options_([&] {
        options.progress = false;
        options.dump_dir.clear();
        options.memory.reset();
        return std::move(options);
      }()),
      cluster_(std::move(cluster)),
      memory_bytes_(memory_bytes),
      steps_([imported] {
        return mlir::OwningOpRef<mlir::ModuleOp>(
            mlir::ModuleOp(imported).clone());
      }) {}

// Compiles a plan's program up to the parts that prices need; null after
// diagnostics.
std::unique_ptr<Compilation> PlanPricer::describe(
    const CompileOptions& options) {
  if (!StepCache::dependsOnPlan(options)) {
    mlir::OwningOpRef<mlir::ModuleOp> step = steps_.named(options);
    if (!step) return nullptr;
    auto made = std::make_unique<Compilation>(
        std::move(step), options, Milestone::kStep, /*machine_code=*/false);
    made->keepShardingsAside();
    made->usePassesOf(managers_);
    if (mlir::failed(made->runTo(Milestone::kPlanned))) return nullptr;
    return made;
  }
  mlir::OwningOpRef<mlir::ModuleOp> module = steps_.simplified(options);
  if (!module) return nullptr;
  Fault fault = Fault::kUser;
  Compilation model(*module, options, Milestone::kSimplified,
                    /*machine_code=*/false);
  model.usePassesOf(managers_);
  auto made = compileProgram(model, /*machine_code=*/false, fault);
  if (mlir::failed(made)) return nullptr;
  (*made)->own(std::move(module));
  return std::move(*made);
}

std::optional<PricedPlan> PlanPricer::compile(const plan::Plan& plan) {
  CompileOptions options = options_;
  options.plan = plan;
  if (std::string wrong = prepareOptions(options); !wrong.empty()) {
    problem_ = wrong;
    return std::nullopt;
  }
  const std::unique_ptr<Compilation> compilation = describe(options);
  if (!compilation) return std::nullopt;
  auto parts = artifactOf(*compilation);
  if (mlir::failed(parts)) return std::nullopt;
  PricedPlan priced;
  priced.program = std::move(parts->program);
  const program::Program& program =
      *flatbuffers::GetRoot<program::Program>(priced.program.data());
  instructions_ += countInstructions(program);
  absl::StatusOr<simulator::StepPrice> price =
      simulator::PriceStep(program, cluster_);
  if (!price.ok()) {
    problem_ = std::string(price.status().message());
    return std::nullopt;
  }
  priced.price = *std::move(price);
  return priced;
}

const PricedPlan* PlanPricer::price(const plan::Plan& plan) {
  return find(plan, !canCompile(plan), kAnySeconds);
}

const PricedPlan* PlanPricer::rank(const plan::Plan& plan, double bar) {
  return find(plan, callsOf(plan) > kFewCalls, bar);
}

const PricedPlan* PlanPricer::find(const plan::Plan& wanted, bool compose,
                                   double bar) {
  const std::string text = plan::WritePlan(wanted);
  const auto [entry, is_new] = known_.try_emplace({text, compose});
  Known& known = entry->second;
  if (known.bound > bar) return nullptr;
  if (!is_new && known.bound == 0) {
    if (!known.price) problem_ = known.problem;
    return known.price.get();
  }
  // Parses the plan as compiling reads it from a file.
  absl::StatusOr<plan::Plan> plan = plan::ParsePlan(text, "the plan");
  std::optional<PricedPlan> priced;
  if (plan.ok()) {
    // Warnings are hidden, since nobody asked for this plan.
    mlir::ScopedDiagnosticHandler quiet(
        imported_.getContext(), [&](mlir::Diagnostic& diagnostic) {
          if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
            problem_ = diagnostic.str();
          return mlir::success();
        });
    priced = compose ? composed(*plan, bar) : compile(*plan);
    // Compiling refuses a plan over its memory limit. Find out by how much.
    if (!priced && plan->memory && !compose) {
      plan::Plan anything = *plan;
      anything.memory.reset();
      anything.fields.erase("memory");
      priced = compile(anything);
    }
  } else {
    problem_ = std::string(plan.status().message());
  }
  known.bound = 0;
  if (!priced) {
    ++failed_;
    known.problem = problem_;
    return nullptr;
  }
  if (priced->is_bound) {
    ++too_slow_;
    known.bound = priced->seconds();
    return nullptr;
  }
  ++(compose ? composed_ : compiled_);
  priced->plan = *std::move(plan);
  priced->text = text;
  priced->fits =
      priced->price.memory_bytes <= memory_bytes_ && priced->price.hostFits();
  known.price = std::make_unique<PricedPlan>(*std::move(priced));
  return known.price.get();
}

const PricedPlan* PlanPricer::compose(const plan::Plan& plan) {
  return composer_ && composes(plan) ? find(plan, true, kAnySeconds) : nullptr;
}

void PlanPricer::setLayers(RepeatedModel model) {
  layers_ = model.layers;
  composer_.emplace(std::move(model), options_, cluster_);
}

int64_t PlanPricer::callsOf(const plan::Plan& plan) const {
  return layers_ > kFewestLayers ? 2 * layers_ * plan.microbatches : 0;
}

bool PlanPricer::isLong(const plan::Plan& plan) const {
  return callsOf(plan) > kManyCalls;
}

// A long program may never be compiled, so its price must be exact.
bool PlanPricer::composes(const plan::Plan& plan) const {
  return PriceComposer::isExact(plan) || !isLong(plan);
}

bool PlanPricer::canCompile(const plan::Plan& plan) const {
  return callsOf(plan) <= kMostCalls;
}

std::optional<PricedPlan> PlanPricer::composed(const plan::Plan& plan,
                                               double bar) {
  if (!composes(plan)) {
    problem_ =
        "the price of a long zero-bubble schedule cannot be composed of layer "
        "kinds: write the plan, compile it and simulate the program";
    return std::nullopt;
  }
  std::optional<ComposedPrice> found =
      composer_->compose(plan, bar, memory_bytes_, problem_);
  if (!found) return std::nullopt;
  instructions_ += found->instructions;
  PricedPlan priced;
  priced.composed = true;
  priced.is_bound = found->is_bound;
  priced.price.memory_bytes = found->memory_bytes;
  priced.price.room_bytes = static_cast<int64_t>(cluster_.device.room());
  simulator::Simulation& simulation = priced.price.simulation;
  simulation.step = found->seconds;
  simulation.classes.push_back({0, 0, 1});
  simulator::DeviceTimes times;
  times.idle = found->bubble;
  times.compute = found->seconds - found->bubble;
  simulation.times.push_back(times);
  const std::pair<const char*, double> parts[] = {
      {"layers, forward", found->forward},
      {"layers, backward", found->backward},
      {"sums, collectives and update", found->rest}};
  for (const auto& [name, seconds] : parts) {
    simulator::OperationTotal total;
    total.function = name;
    total.kind = "kernel";
    total.calls = 1;
    total.seconds = seconds;
    simulation.operations.push_back(std::move(total));
  }
  return priced;
}

absl::StatusOr<double> PlanPricer::secondsOn(
    const PricedPlan& plan, const planner::Cluster& cluster) const {
  if (plan.composed)
    return absl::FailedPreconditionError("expected a compiled program");
  absl::StatusOr<simulator::StepPrice> price = simulator::PriceStep(
      *flatbuffers::GetRoot<program::Program>(plan.program.data()), cluster);
  if (!price.ok()) return price.status();
  return price->simulation.step;
}

}  // namespace partita::driver
