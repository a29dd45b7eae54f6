// Compiles an imported model to an artifact on disk: runs the phases of
// compilation.h, makes the choices that depend on memory, and writes the
// artifact.
#include "compiler/driver/compile.h"

#include <chrono>
#include <filesystem>
#include <optional>

#include "compiler/core/schedule_csv.h"
#include "compiler/driver/budgets.h"
#include "compiler/driver/check_model.h"
#include "compiler/driver/choose_recomputation.h"
#include "compiler/driver/lost_names.h"
#include "compiler/driver/memory_limit.h"
#include "compiler/driver/stage_times.h"
#include "compiler/driver/state_buffers.h"
#include "compiler/driver/targets.h"
#include "compiler/emit/emit.h"
#include "compiler/kernels/generate_code.h"
#include "compiler/plan/plan_schedule.h"
#include "compiler/sharding/convert.h"
#include "dialects/dist/numbered_axes.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/IR/OwningOpRef.h"
#include "runtime/base/quantity.h"
#include "runtime/program/target.h"

namespace partita::driver {
namespace {

using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::success;

double now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

LogicalResult checkOffload(const Compilation& compilation) {
  const plan::Plan* plan = compilation.plan();
  if (!statesOnHost(plan) || compilation.train()) return success();
  const auto field = plan->fields.find("offload");
  mlir::ModuleOp module = compilation.module();
  return mlir::emitError(mlir::UnknownLoc::get(module.getContext()))
         << (field == plan->fields.end()
                 ? ""
                 : plan::Where(*plan, field->second) + ": ")
         << "offload: keeps optimizer states "
         << (plan->state_files ? "in files" : "on the host")
         << ", but this program has none; compile with --train, or leave "
            "offload out";
}

// After simplification, which may leave loops out.
LogicalResult checkLoops(mlir::ModuleOp module, llvm::StringRef target) {
  if (!program::IsGpuTarget(target.str())) return success();
  const auto refused = module.walk([&](nn::LoopOp loop) {
    loop.emitError(
        "expected target cpu for a model with a loop whose number of "
        "iterations depends on data, as the host reads its condition, found ")
        << target << "; compile it with --target cpu";
    return mlir::WalkResult::interrupt();
  });
  return success(!refused.wasInterrupted());
}

// The memory limit per device, if the plan or the options give one.
std::optional<MemoryLimit> limitOf(const Compilation& compilation) {
  return findLimit(compilation.plan(), compilation.options().memory);
}

// Replaces `recompute: budget` in `options` by the rules that fit the memory
// limit.
LogicalResult fitRecomputation(Compilation& simplified,
                               CompileOptions& options) {
  plan::Plan* plan = options.plan ? &*options.plan : nullptr;
  if (!simplified.train() || !hasBudget(recomputeRules(plan, options.train)))
    return success();
  const std::optional<MemoryLimit> limit = limitOf(simplified);
  mlir::ModuleOp module = simplified.module();
  if (!limit)
    return mlir::emitError(mlir::UnknownLoc::get(module.getContext()))
           << "recompute: budget: expected a memory limit beside it, as in "
              "memory: 4 GB; found none";
  return simplified.phase("recomputation", [&]() -> LogicalResult {
    Fault fault = Fault::kUser;
    auto choice = chooseRecomputation(module, options, limit->bytes, fault);
    if (mlir::failed(choice)) return failure();
    simplified.report().recomputation = choice->text;
    (plan && !plan->recompute.empty() ? plan->recompute
                                      : options.train.recompute) =
        choice->rules;
    return success();
  });
}

// Runs to kPlanned and checks the plan's budgets on the way. `simplified` is
// the same model before division; null if the plan has no budgets.
LogicalResult plan(Compilation& compilation, mlir::ModuleOp simplified,
                   Fault& fault) {
  if (mlir::failed(compilation.runTo(Milestone::kPartitioned, fault)))
    return failure();
  if (simplified && mlir::failed(checkBudgets(compilation.programs(),
                                              simplified, *compilation.plan(),
                                              compilation.train(), fault)))
    return failure();
  return compilation.runTo(Milestone::kPlanned, fault);
}

LogicalResult describePipeline(const Compilation& compilation,
                               emit::EmitOptions& emit_options) {
  if (!compilation.isPipeline()) return success();
  mlir::ModuleOp module = compilation.module();
  const plan::Plan& plan = *compilation.plan();
  emit_options.pipeline =
      dist::numberedAxes(dist::findMesh(module),
                         sharding::axesAttr(module.getContext(),
                                            plan::DepthAxes(plan), plan.mesh));
  emit_options.inputs = compilation.ports().inputs;
  emit_options.outputs = compilation.ports().outputs;
  auto schedule = plan::ScheduleOf(plan, compilation.train() != nullptr);
  if (!schedule.ok()) return failure();
  emit_options.schedule = core::WriteScheduleCsv(*schedule);
  return success();
}

std::string summaryOf(Compilation& compilation) {
  llvm::json::Value summary = compilation.report().toJson();
  for (const char* unknown_yet : {"artifact_bytes", "seconds"})
    summary.getAsObject()->erase(unknown_yet);
  if (compilation.plan())
    (*summary.getAsObject())["plan"] = plan::WritePlan(*compilation.plan());
  if (compilation.train())
    (*summary.getAsObject())["optimizer"] = compilation.train()->optimizer;
  return llvm::formatv("{0}", summary).str();
}

LogicalResult write(Compilation& compilation) {
  const CompileOptions& options = compilation.options();
  auto parts = artifactOf(compilation);
  if (mlir::failed(parts)) return failure();
  absl::Status written = program::WriteArtifact(options.output, *parts);
  mlir::ModuleOp module = compilation.module();
  if (!written.ok())
    return mlir::emitError(mlir::UnknownLoc::get(module.getContext()))
           << std::string(written.message());
  std::error_code error;
  compilation.report().artifact_bytes =
      std::filesystem::file_size(options.output, error);
  return success();
}

}  // namespace

FailureOr<std::unique_ptr<Compilation>> compileProgram(Compilation& simplified,
                                                       bool machine_code,
                                                       Fault& fault) {
  CompileOptions options = simplified.options();
  if (mlir::failed(fitRecomputation(simplified, options))) return failure();
  mlir::ModuleOp module = simplified.module();
  const plan::Plan* plan = simplified.plan();
  // With a memory limit, stages are first cut by time, because their memory is
  // then known exactly. If that exceeds the limit, they are cut by estimated
  // memory.
  const bool by_time =
      plan && plan->memory && plan->stages.empty() && simplified.isPipeline();
  const pipeline::StageTimes times = stageTimes(module, options);
  mlir::OwningOpRef<mlir::ModuleOp> copy;
  if (by_time || (plan && !plan->budgets.empty())) copy = module.clone();
  const auto attempt =
      [&](mlir::ModuleOp from, mlir::ModuleOp whole,
          bool cut_by_time) -> FailureOr<std::unique_ptr<Compilation>> {
    auto made = std::make_unique<Compilation>(
        from, options, Milestone::kSimplified, machine_code);
    made->continueAfter(simplified);
    if (cut_by_time) made->cutByTime();
    // When stages are cut by memory, counted work balances them as well, and
    // its cuts are known to fit.
    if (cut_by_time || !by_time) made->setStageTimes(times);
    if (mlir::failed(driver::plan(
            *made, plan && !plan->budgets.empty() ? whole : nullptr, fault)))
      return failure();
    return made;
  };
  auto made = attempt(module, copy.get(), by_time);
  if (mlir::failed(made)) return failure();
  const std::optional<MemoryLimit> limit = limitOf(simplified);
  const int64_t bytes = (*made)->report().memoryTable().total();
  if (by_time && bytes > limit->bytes) {
    auto smaller = attempt(*copy, *copy, false);
    if (mlir::failed(smaller)) return failure();
    mlir::emitRemark(mlir::UnknownLoc::get(module.getContext()))
        << "stages of equal work take " << base::FormatBytes(bytes)
        << " on a device, more than " << limit->where << ": "
        << base::FormatBytes(limit->bytes)
        << "; stages are cut by memory instead, to "
        << base::FormatBytes((*smaller)->report().memoryTable().total());
    (*smaller)->own(std::move(copy));
    made = std::move(smaller);
  }
  if (plan && mlir::failed(checkStateBuffers((*made)->module(), *plan)))
    return failure();
  // The device with the highest peak decides.
  if (limit && mlir::failed(checkMemory((*made)->module(),
                                        (*made)->report().memoryTable(), *limit,
                                        simplified.plan(), simplified.train())))
    return failure();
  return std::move(*made);
}

FailureOr<program::ArtifactParts> artifactOf(Compilation& compilation) {
  const CompileOptions& options = compilation.options();
  const std::optional<CompileTarget> target = findTarget(options.target);
  if (!target)
    return compilation.module().emitError(checkTarget(options.target));
  compilation.report().measureEntries(compilation.module());
  emit::EmitOptions emit_options;
  if (mlir::failed(describePipeline(compilation, emit_options)))
    return failure();
  emit_options.target = options.target;
  emit_options.cpu_features =
      target->kind->features({target->architecture, options.cpu, {}});
  emit_options.summary_json = summaryOf(compilation);
  emit_options.kernel_cycles = kernels::cyclesOfCode(compilation.module());
  for (const memory::MemoryTable& table : compilation.report().memory_tables)
    emit_options.memory.push_back(toProgram(table));
  emit_options.source_folder = options.source_folder;
  emit_options.artifact_folder =
      std::filesystem::path(options.output).parent_path().string();
  emit_options.embed_weights = options.embed_weights;
  emit_options.states_on_host = statesOnHost(compilation.plan());
  if (compilation.plan() != nullptr && compilation.plan()->state_files) {
    emit_options.state_folder = compilation.plan()->state_files->folder;
    emit_options.state_buffers = compilation.plan()->state_files->buffers;
  }
  return emit::buildArtifact(compilation.module(), compilation.machineCode(),
                             emit_options);
}

FailureOr<CompileReport> compileToFile(mlir::ModuleOp module,
                                       const CompileOptions& options,
                                       Fault* fault) {
  Fault unasked = Fault::kUser;
  Fault& blamed = fault ? *fault : unasked;
  const double start = now();
  if (std::string wrong = prepareOptions(options); !wrong.empty())
    return mlir::emitError(mlir::UnknownLoc::get(module.getContext()), wrong);
  Compilation imported(module, options);
  if (mlir::failed(checkOffload(imported)) || mlir::failed(checkModel(module)))
    return failure();
  imported.report().countModel(module);
  if (imported.train()) reportLostNames(module, /*training=*/true);
  if (mlir::failed(imported.dump("import")) ||
      mlir::failed(imported.runTo(Milestone::kSimplified, blamed)) ||
      mlir::failed(checkLoops(imported.module(), options.target)))
    return failure();
  auto compilation = compileProgram(imported, /*machine_code=*/true, blamed);
  if (mlir::failed(compilation)) return failure();
  if (mlir::failed(
          (*compilation)->phase("write", [&] { return write(**compilation); })))
    return failure();
  (*compilation)->report().seconds = now() - start;
  return (*compilation)->report();
}

}  // namespace partita::driver
