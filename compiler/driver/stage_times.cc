// Prices a step of one microbatch with all layers on one rank, by function.
#include "compiler/driver/stage_times.h"

#include <map>
#include <optional>

#include "compiler/driver/compile.h"
#include "compiler/driver/targets.h"
#include "compiler/plan/plan_schedule.h"
#include "compiler/plan/without_depth.h"
#include "compiler/planner/cluster/cluster.h"
#include "compiler/simulator/price.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "runtime/program/mesh.h"

namespace partita::driver {
namespace {

// Prefix of the functions between layer calls; see
// compiler/autodiff/segments.cc.
constexpr llvm::StringRef kSegment = "segment";

// Devices of the target, with links that take no time. No devices if the target
// is unknown.
planner::Cluster clusterOf(llvm::StringRef target, int64_t devices) {
  const std::optional<CompileTarget> found = findTarget(target);
  if (!found) return {};
  absl::StatusOr<planner::Cluster> cluster =
      planner::BuiltInCluster(found->kind->cluster(found->architecture).str());
  if (!cluster.ok()) return {};
  constexpr double kFree = 1e18;
  cluster->devices = static_cast<int>(devices);
  cluster->levels = {{"free", cluster->devices, kFree, 0, 1}};
  return *std::move(cluster);
}

// The longest name in `calls` that `name` begins with.
std::string layerOf(llvm::StringRef name,
                    const std::map<std::string, int64_t>& calls) {
  std::string best;
  for (const auto& [layer, count] : calls)
    if ((name == layer || name.starts_with(layer + "_")) &&
        layer.size() > best.size())
      best = layer;
  return best;
}

// "segment_3" is 4, "segment" is 0, other names are -1.
int segmentOf(llvm::StringRef name) {
  if (!name.consume_front(kSegment)) return -1;
  for (llvm::StringRef pass :
       {"_forward", "_backward", "_backward_input", "_backward_weight"})
    if (name.ends_with(pass)) name = name.drop_back(pass.size());
  if (name.empty()) return 0;
  int number = 0;
  return name.consume_front("_") && !name.getAsInteger(10, number) ? number + 1
                                                                   : -1;
}

}  // namespace

pipeline::StageTimes stageTimes(mlir::ModuleOp module,
                                const CompileOptions& options) {
  pipeline::StageTimes times;
  if (!options.plan || plan::DepthAxes(*options.plan).empty() ||
      !options.plan->stages.empty() || options.train.optimizer.empty())
    return times;
  CompileOptions whole = options;
  whole.plan = plan::WithoutDepth(*options.plan);
  whole.memory.reset();
  whole.train.first_microbatch = true;
  whole.progress = false;
  whole.dump_dir.clear();
  mlir::ScopedDiagnosticHandler quiet(
      module.getContext(), [](mlir::Diagnostic&) { return mlir::success(); });
  Compilation compilation(mlir::OwningOpRef<mlir::ModuleOp>(module.clone()),
                          whole, Milestone::kSimplified,
                          /*machine_code=*/false);
  if (mlir::failed(compilation.runTo(Milestone::kPlanned))) return times;
  auto parts = artifactOf(compilation);
  if (mlir::failed(parts)) return times;
  const auto& program =
      *flatbuffers::GetRoot<program::Program>(parts->program.data());
  auto price = simulator::PriceStep(
      program, clusterOf(whole.target, program::SizeOf(program.mesh())));
  if (!price.ok()) return times;
  std::map<std::string, int64_t> calls;
  auto main = module.lookupSymbol<mlir::func::FuncOp>("main");
  for (auto call : main.getOps<mlir::func::CallOp>())
    ++calls[call.getCallee().str()];
  std::map<int, double> runs;
  // Only functions with a gradient are layers. Other calls are parts of runs.
  for (const simulator::OperationTotal& total : price->simulation.operations)
    if (const std::string layer = layerOf(total.function, calls);
        !layer.empty() && llvm::StringRef(total.function).contains("_backward"))
      times.calls[layer] = 0;
  for (const simulator::OperationTotal& total : price->simulation.operations) {
    const std::string layer = layerOf(total.function, calls);
    if (!layer.empty() && times.calls.contains(layer))
      times.calls[layer] +=
          total.seconds / static_cast<double>(calls.at(layer));
    else if (const int run = segmentOf(total.function); run >= 0)
      runs[run] += total.seconds;
  }
  for (const auto& [run, seconds] : runs) times.runs.push_back(seconds);
  return times;
}

}  // namespace partita::driver
