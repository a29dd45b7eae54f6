// Each step between two milestones is a list of phases from model_phases.cc and
// pipeline.cc, or one of the few phases that are not lists of passes.
#include "compiler/driver/compilation.h"

#include <chrono>
#include <utility>

#include "compiler/driver/console.h"
#include "compiler/driver/device_scratch.h"
#include "compiler/driver/index_limits.h"
#include "compiler/driver/memory_limit.h"
#include "compiler/driver/pipeline.h"
#include "compiler/driver/stage_memory.h"
#include "compiler/driver/state_buffers.h"
#include "compiler/driver/targets.h"
#include "compiler/pipeline/merge.h"
#include "compiler/plan/plan_schedule.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/IR/Diagnostics.h"

namespace partita::driver {
namespace {

using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::success;

// Shorter compilations print no progress.
constexpr double kSlowSeconds = 2;

double now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Milestone after(Milestone milestone) {
  return static_cast<Milestone>(static_cast<int>(milestone) + 1);
}

}  // namespace

CompileOptions optionsToJudge(const plan::Plan& plan,
                              const TrainOptions* train) {
  CompileOptions options;
  options.plan = plan;
  options.progress = false;
  if (train != nullptr) options.train = *train;
  return options;
}

Compilation::Compilation(mlir::ModuleOp module, const CompileOptions& options,
                         Milestone at, bool machine_code)
    : programs_{module},
      options_(options),
      plan_(options.plan),
      train_(options.train),
      at_(at),
      machine_code_(machine_code),
      start_(now()) {
  // On GPUs, attention's gradient would compute all scores once more for it.
  train_.keep_lse = onGpu();
  if (!plan_) return;
  report_.devices = plan_->mesh.Size();
  train_.microbatches = plan_->microbatches;
  train_.keep_lse |= plan_->attention == plan::LongAttention::kRing;
  if (!plan_->memory) plan_->memory = options.memory;
  if (plan_->recompute.empty()) return;
  train_.recompute = plan_->recompute;
  train_.recompute_origin = plan_->origin;
}

Compilation::Compilation(mlir::OwningOpRef<mlir::ModuleOp> module,
                         const CompileOptions& options, Milestone at,
                         bool machine_code)
    : Compilation(*module, options, at, machine_code) {
  own(std::move(module));
}

LogicalResult Compilation::runTo(Milestone milestone) {
  while (at_ < milestone) {
    const Milestone next = after(at_);
    const auto step = [&]() -> LogicalResult {
      switch (next) {
        case Milestone::kImported:
          return success();
        case Milestone::kLossAttached:
          return runPhases(attachLoss(train()));
        case Milestone::kSimplified:
          return simplify();
        case Milestone::kExposed:
          return plan_ ? runPhases(exposeFactors()) : success();
        case Milestone::kStaged:
          return plan_ ? stage() : success();
        case Milestone::kStep:
          return runPhases(completeStep(plan(), train(), precision()));
        case Milestone::kDivided:
          return plan_ ? divide() : success();
        case Milestone::kCut:
          return isPipeline() ? cut() : success();
        case Milestone::kPartitioned:
          return plan_ ? runPhases(partitionModel(*plan_, decided_))
                       : success();
        case Milestone::kLowered:
          return runPhases(
              lowerToExec({train() != nullptr, onGpu(), hasFloat8()}));
        case Milestone::kMerged:
          return merge();
        case Milestone::kOrdered:
          return runPhases(
              {orderWork(orderOf(plan(), onGpu(), options_.overlap))});
        case Milestone::kCoded:
          return generateCode();
        case Milestone::kPlanned:
          return planMemory();
      }
      return failure();
    };
    if (mlir::failed(step())) return failure();
    at_ = next;
  }
  return success();
}

LogicalResult Compilation::runTo(Milestone milestone, Fault& fault) {
  const LogicalResult result = runTo(milestone);
  if (fault_ == Fault::kOurs) fault = fault_;
  return result;
}

bool Compilation::hasFloat8() const {
  const std::optional<CompileTarget> target = findTarget(options_.target);
  return target && target->kind->float8(target->architecture);
}

LogicalResult Compilation::simplify() {
  if (mlir::failed(
          runPhases({simplifyModel(train() != nullptr, outlines_layers_)})))
    return failure();
  markIndexLimits(module());
  return runPhases(reducePrecision(precision(), train()));
}

LogicalResult Compilation::stage() {
  pipeline::StageMemory memory;
  if (isPipeline() && !cuts_by_time_) memory = stageMemory(*plan_, train());
  return runPhases(assignStages(*plan_, train(), memory, times_));
}

LogicalResult Compilation::divide() {
  // Cutting and listing paddings read shardings from the module.
  if (shardings_aside_ && !isPipeline() && !lists_paddings_)
    decided_ = std::make_shared<sharding::Decided>();
  if (mlir::failed(runPhases({shardModel(*plan_, decided_)}))) return failure();
  if (!lists_paddings_) return success();
  auto found = partition::listPaddings(module());
  if (mlir::failed(found)) return failure();
  paddings_ = std::move(*found);
  return success();
}

LogicalResult Compilation::cut() {
  return phase("cut", [&]() -> LogicalResult {
    ports_ = namePorts(module());
    auto ranks = cutModel(module(), *plan_, train(), fault_);
    if (mlir::failed(ranks)) return failure();
    ranks_ = std::move(*ranks);
    programs_.clear();
    for (auto& rank : ranks_) programs_.push_back(*rank);
    return success();
  });
}

LogicalResult Compilation::merge() {
  if (!ranks_.empty() && mlir::failed(phase("merge", [&] {
        merged_ = pipeline::mergePrograms(ranks_);
        ranks_.clear();
        programs_ = {*merged_};
        return success();
      })))
    return failure();
  report_.countProgram(module());
  return success();
}

LogicalResult Compilation::generateCode() {
  const mlir::Location loc = mlir::UnknownLoc::get(module().getContext());
  const std::optional<CompileTarget> target = findTarget(options_.target);
  if (!target) return mlir::emitError(loc, checkTarget(options_.target));
  const TargetKind& kind = *target->kind;
  const CodeOptions code_options = {target->architecture, options_.cpu,
                                    options_.cubins};
  // Stores code that a function of the target returns.
  const auto keep = [&](FailureOr<std::string> code) -> LogicalResult {
    if (mlir::failed(code)) return failure();
    code_ = std::move(*code);
    return success();
  };
  const bool has_code = machine_code_;
  if (mlir::failed(phase(has_code ? "code" : "launches", [&] {
        return has_code ? keep(kind.generate(module(), code_options))
                        : kind.describe(module(), code_options);
      })))
    return reportBug(module(), "code", fault_);
  if (!has_code || code_.empty()) return success();
  return phase("link",
               [&] { return keep(kind.link(loc, code_, code_options)); });
}

LogicalResult Compilation::planMemory() {
  if (mlir::failed(runPhases(planResources({train() != nullptr, onGpu()}))))
    return failure();
  report_.memory_tables =
      memory::tabulateMemory(module(), statesOnHost(plan()));
  if (plan() != nullptr && plan()->state_files)
    for (auto [table, entry] :
         llvm::zip_equal(report_.memory_tables, exec::entriesOf(module())))
      countStateFiles(entry, plan()->state_files->buffers, table);
  if (!onGpu()) return success();
  for (auto [table, slots, buffers, inputs] :
       llvm::zip_equal(report_.memory_tables, transferSlots(module()),
                       exchangeBuffers(module()), nextInputs(module()))) {
    table.of(memory::MemoryClass::kScratch) = deviceScratch(module());
    table.of(memory::MemoryClass::kCommunication) += slots + buffers;
    table.of(memory::MemoryClass::kPorts) += inputs;
  }
  return success();
}

LogicalResult Compilation::phase(const std::string& name,
                                 llvm::function_ref<LogicalResult()> body) {
  if (isCancelled())
    return mlir::emitError(mlir::UnknownLoc::get(module().getContext()))
           << "expected to compile to the end, found a request to stop "
              "before the phase '"
           << name << "'";
  const double begin = now();
  LogicalResult result = body();
  report_.phase_seconds.push_back({name, now() - begin});
  if (options_.progress && now() - start_ > kSlowSeconds)
    messages() << llvm::formatv("  {0,-14} {1,6:F1} s\n", name, now() - start_);
  if (mlir::failed(result)) return failure();
  return dump(name);
}

LogicalResult Compilation::runPhases(const std::vector<Phase>& phases) {
  for (const Phase& next : phases)
    if (mlir::failed(phase(next.name, [&]() -> LogicalResult {
          for (mlir::ModuleOp program : programs_)
            if (mlir::failed(runPhase(program, next, fault_,
                                      /*verify=*/machine_code_, managers_)))
              return failure();
          return success();
        })))
      return failure();
  return success();
}

void Compilation::continueAfter(const Compilation& before) {
  dumps_ = before.dumps_;
  start_ = before.start_;
  report_ = before.report_;
  managers_ = before.managers_;
}

plan::Precision Compilation::precision() const {
  return plan_ ? plan_->precision.value_or(options_.precision)
               : options_.precision;
}

bool Compilation::isPipeline() const {
  return plan_ && !plan::DepthAxes(*plan_).empty();
}

LogicalResult Compilation::dump(const std::string& name) {
  if (options_.dump_dir.empty()) return success();
  const std::string path =
      llvm::formatv("{0}/{1:02}-{2}", options_.dump_dir, dumps_++, name);
  for (auto [rank, program] : llvm::enumerate(programs_))
    if (mlir::failed(dump(
            program, path + (programs_.size() == 1
                                 ? ".mlir"
                                 : ".rank" + std::to_string(rank) + ".mlir"))))
      return failure();
  return success();
}

LogicalResult Compilation::dump(mlir::ModuleOp program,
                                const std::string& path) {
  std::error_code error;
  llvm::raw_fd_ostream stream(path, error);
  if (error)
    return mlir::emitError(mlir::UnknownLoc::get(program.getContext()))
           << "cannot write " << path << ": " << error.message();
  program.print(stream, mlir::OpPrintingFlags().elideLargeElementsAttrs(64));
  stream.close();
  if (!stream.has_error()) return success();
  error = stream.error();
  stream.clear_error();  // or the stream's destructor ends the process
  return mlir::emitError(mlir::UnknownLoc::get(program.getContext()))
         << "cannot write " << path << ": " << error.message();
}

}  // namespace partita::driver
