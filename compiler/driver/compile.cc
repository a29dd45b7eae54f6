// Runs the phases, generates code, plans memory and writes the artifact.
#include "compiler/driver/compile.h"

#include <array>
#include <chrono>
#include <filesystem>
#include <set>

#include "compiler/core/schedule_csv.h"
#include "compiler/driver/budgets.h"
#include "compiler/driver/check_model.h"
#include "compiler/driver/choose_recomputation.h"
#include "compiler/driver/cut_model.h"
#include "compiler/driver/device_scratch.h"
#include "compiler/driver/index_limits.h"
#include "compiler/driver/memory_limit.h"
#include "compiler/driver/pipeline.h"
#include "compiler/emit/emit.h"
#include "compiler/kernels/cpu_names.h"
#include "compiler/kernels/generate_code.h"
#include "compiler/pipeline/merge.h"
#include "compiler/plan/plan_schedule.h"
#include "compiler/sharding/convert.h"
#include "dialects/dist/numbered_axes.h"
#include "dialects/exec/dialect.h"
#include "dialects/exec/entries.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/TypeUtilities.h"
#include "runtime/base/quantity.h"

namespace partita::driver {
namespace {

constexpr llvm::StringRef kCuda = "cuda:";

using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::success;
using mlir::func::FuncOp;

double now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Why collectives and transfers are there, by the function and the operation
// that they are for: what a simulation of the program can say of them.
llvm::json::Value reasonsOf(mlir::ModuleOp module) {
  std::set<std::array<std::string, 4>> rows;
  for (FuncOp function : module.getOps<FuncOp>())
    function.walk([&](mlir::Operation* op) {
      auto why = op->getAttrOfType<mlir::StringAttr>("why");
      if (!why) return;
      auto name = op->getLoc()->findInstanceOf<mlir::NameLoc>();
      llvm::StringRef kind = op->getName().stripDialect();
      if (auto collective = llvm::dyn_cast<exec::CollectiveOp>(op))
        kind = exec::stringifyCollectiveKind(collective.getKind());
      rows.insert(
          {function.getName().str(), kind.str(),
           name ? name.getName().str() : op->getName().getStringRef().str(),
           why.str()});
    });
  llvm::json::Array reasons;
  for (const auto& [function, kind, name, why] : rows)
    reasons.push_back(llvm::json::Object{
        {"function", function}, {"kind", kind}, {"name", name}, {"why", why}});
  return reasons;
}

class Compilation {
 public:
  Compilation(mlir::ModuleOp module, const CompileOptions& options)
      : module_(module),
        programs_{module},
        options_(options),
        plan_(options.plan),
        train_(options.train),
        start_(now()) {
    if (!plan_) return;
    train_.microbatches = plan_->microbatches;
    if (!plan_->memory) plan_->memory = options.memory;
  }

  FailureOr<CompileReport> run() {
    if (std::string wrong = prepareOptions(options_); !wrong.empty())
      return mlir::emitError(mlir::UnknownLoc::get(module_.getContext()),
                             wrong);
    if (mlir::failed(checkOffload()) || mlir::failed(checkModel(module_)))
      return failure();
    report_.countModel(module_);
    if (train()) remarkOnConstants();
    if (mlir::failed(dump("import")) ||
        mlir::failed(runPhases(simplifyModel(train()))))
      return failure();
    markIndexLimits(module_);
    if (mlir::failed(runPhases(reducePrecision(precision(), train()))) ||
        mlir::failed(fitRecomputation()))
      return failure();
    FailureOr<std::string> code = buildFitting();
    if (mlir::failed(code) ||
        mlir::failed(phase("write", [&] { return write(std::move(*code)); })))
      return failure();
    report_.seconds = now() - start_;
    return report_;
  }

  Fault fault() const { return fault_; }

 private:
  LogicalResult phase(const std::string& name,
                      llvm::function_ref<LogicalResult()> body) {
    const double begin = now();
    LogicalResult result = body();
    report_.phase_seconds.push_back({name, now() - begin});
    // Quick compilations say nothing; slow ones show where they are.
    if (now() - start_ > 2)
      llvm::errs() << llvm::formatv("  {0,-14} {1,6:F1} s\n", name,
                                    now() - start_);
    if (mlir::failed(result)) return failure();
    return dump(name);
  }

  LogicalResult runPhases(const std::vector<Phase>& phases) {
    for (const Phase& next : phases)
      if (mlir::failed(phase(next.name, [&]() -> LogicalResult {
            for (mlir::ModuleOp program : programs_)
              if (mlir::failed(runPhase(program, next, fault_)))
                return failure();
            return success();
          })))
        return failure();
    return success();
  }

  // Null: inference.
  const TrainOptions* train() const {
    return train_.optimizer.empty() ? nullptr : &train_;
  }

  plan::Precision precision() const {
    return plan_ ? plan_->precision.value_or(options_.precision)
                 : options_.precision;
  }

  const plan::Plan* plan() const { return plan_ ? &*plan_ : nullptr; }

  std::optional<MemoryLimit> limit() const {
    if (plan_ && plan_->fields.count("memory") > 0)
      return MemoryLimit{
          *plan_->memory,
          plan::Where(*plan_, plan_->fields.at("memory")) + ": memory"};
    if (options_.memory) return MemoryLimit{*options_.memory, "--memory"};
    return std::nullopt;
  }

  // What is computed again, where that follows from the memory there is.
  LogicalResult fitRecomputation() {
    if (!train() || !hasBudget(recomputeRules(plan(), train_)))
      return success();
    if (!limit())
      return mlir::emitError(mlir::UnknownLoc::get(module_.getContext()))
             << "recompute: budget: expected beside it how much memory a "
                "device has, as in memory: 4 GB; found none";
    return phase("recomputation", [&]() -> LogicalResult {
      auto choice =
          chooseRecomputation(module_, plan(), train_, options_.overlap,
                              !gpu().empty(), limit()->bytes, fault_);
      if (mlir::failed(choice)) return failure();
      report_.recomputation = choice->text;
      (plan_ && !plan_->recompute.empty() ? plan_->recompute
                                          : train_.recompute) = choice->rules;
      return success();
    });
  }

  bool statesOnHost() const { return driver::statesOnHost(plan()); }

  LogicalResult checkOffload() {
    if (!statesOnHost() || train()) return success();
    const auto field = plan_->fields.find("offload");
    return mlir::emitError(mlir::UnknownLoc::get(module_.getContext()))
           << (field == plan_->fields.end()
                   ? ""
                   : plan::Where(*plan_, field->second) + ": ")
           << "offload: keeps what an optimizer keeps on the host, and this "
              "program has none; compile with --train, or leave offload out";
  }

  // Programs and their code, of a memory that is allowed. Stages that a limit
  // has a say in are cut by time all the same, since what they take is known
  // exactly then; only where it is too much, by what they take at a guess.
  FailureOr<std::string> buildFitting() {
    mlir::OwningOpRef<mlir::ModuleOp> simplified;
    cuts_by_time_ = plan_ && plan_->memory && plan_->stages.empty() &&
                    !plan::DepthAxes(*plan_).empty();
    if (cuts_by_time_) simplified = module_.clone();
    FailureOr<std::string> code = build();
    if (mlir::failed(code)) return failure();
    const int64_t by_time = report_.memoryTable().total();
    if (cuts_by_time_ && by_time > limit()->bytes) {
      cuts_by_time_ = false;
      restart(std::move(simplified));
      code = build();
      if (mlir::failed(code)) return failure();
      mlir::emitRemark(mlir::UnknownLoc::get(module_.getContext()))
          << "stages of equal work take " << base::FormatBytes(by_time)
          << " on a device, more than " << limit()->where << ": "
          << base::FormatBytes(limit()->bytes)
          << "; they are cut by what they take, to "
          << base::FormatBytes(report_.memoryTable().total());
    }
    // The device that takes most decides.
    if (limit() && mlir::failed(checkMemory(module_, report_.memoryTable(),
                                            *limit(), plan(), train())))
      return failure();
    return code;
  }

  // From the simplified model on.
  void restart(mlir::OwningOpRef<mlir::ModuleOp> simplified) {
    restarted_ = std::move(simplified);
    module_ = *restarted_;
    programs_ = {module_};
    merged_ = {};
  }

  FailureOr<std::string> build() {
    std::string code;
    if (mlir::failed(divide()) ||
        mlir::failed(
            runPhases(lowerToExec({train() != nullptr, !gpu().empty()}))) ||
        mlir::failed(merge()))
      return failure();
    report_.countProgram(module_);
    if (mlir::failed(generate(code)) ||
        mlir::failed(
            runPhases(planResources(orderOf(plan(), options_.overlap)))))
      return failure();
    report_.memory_tables = memory::tabulateMemory(module_, statesOnHost());
    if (!gpu().empty())
      for (auto [table, slots, inputs] :
           llvm::zip_equal(report_.memory_tables, transferSlots(module_),
                           nextInputs(module_))) {
        table.of(memory::MemoryClass::kScratch) = deviceScratch(module_);
        table.of(memory::MemoryClass::kCommunication) += slots;
        table.of(memory::MemoryClass::kPorts) += inputs;
      }
    return code;
  }

  LogicalResult divide() {
    if (!plan_) return train() ? runPhases(trainModel(*train())) : success();
    report_.devices = plan_->mesh.Size();
    mlir::OwningOpRef<mlir::ModuleOp> simplified;
    if (!plan_->budgets.empty()) simplified = module_.clone();
    plan::Plan followed = *plan_;
    if (cuts_by_time_) followed.memory.reset();
    if (mlir::failed(runPhases(divideModel(followed, train()))) ||
        mlir::failed(cut()) ||
        mlir::failed(runPhases({partitionModel(*plan_)})))
      return failure();
    return simplified
               ? checkBudgets(programs_, *simplified, *plan_, train(), fault_)
               : success();
  }

  // From here to merge() each rank of a pipeline has a module of its own.
  LogicalResult cut() {
    if (plan::DepthAxes(*plan_).empty()) return success();
    return phase("cut", [&]() -> LogicalResult {
      ports_ = namePorts(module_);
      auto ranks = cutModel(module_.clone(), *plan_, train(), fault_);
      if (mlir::failed(ranks)) return failure();
      ranks_ = std::move(*ranks);
      programs_.clear();
      for (auto& rank : ranks_) programs_.push_back(*rank);
      return success();
    });
  }

  LogicalResult merge() {
    if (ranks_.empty()) return success();
    return phase("merge", [&] {
      merged_ = pipeline::mergePrograms(ranks_);
      ranks_.clear();
      module_ = *merged_;
      programs_ = {module_};
      return success();
    });
  }

  // Code as the artifact holds it.
  LogicalResult generate(std::string& code) {
    FailureOr<std::string> generated = failure();
    if (mlir::failed(phase("code", [&] {
          generated = generateForTarget();
          return success(mlir::succeeded(generated));
        })))
      return blameUs(module_, "code", fault_);
    code = std::move(*generated);
    if (!gpu().empty() || code.empty()) return success();
    return phase("link", [&] { return link(code); });
  }

  FailureOr<std::string> generateForTarget() {
    if (!gpu().empty()) {
      kernels::PtxOptions options;
      options.chip = gpu();
      return kernels::generatePtx(module_, options);
    }
    kernels::ObjectOptions options;
    options.cpu = options_.cpu;
    return kernels::generateObject(module_, options);
  }

  // The chip; empty: a CPU.
  std::string gpu() const {
    const llvm::StringRef target = options_.target;
    return target.starts_with(kCuda) ? target.substr(kCuda.size()).str() : "";
  }

  LogicalResult link(std::string& code) {
    FailureOr<std::string> linked = kernels::linkSharedObject(
        mlir::UnknownLoc::get(module_.getContext()), code);
    if (mlir::failed(linked)) return failure();
    code = std::move(*linked);
    return success();
  }

  LogicalResult dump(const std::string& name) {
    if (options_.dump_dir.empty()) return success();
    const std::string path =
        llvm::formatv("{0}/{1:02}-{2}", options_.dump_dir, dumps_++, name);
    for (auto [rank, program] : llvm::enumerate(programs_))
      if (mlir::failed(
              dump(program,
                   path + (programs_.size() == 1
                               ? ".mlir"
                               : ".rank" + std::to_string(rank) + ".mlir"))))
        return failure();
    return success();
  }

  LogicalResult dump(mlir::ModuleOp program, const std::string& path) {
    std::error_code error;
    llvm::raw_fd_ostream stream(path, error);
    if (error)
      return mlir::emitError(mlir::UnknownLoc::get(module_.getContext()))
             << "cannot write " << path << ": " << error.message();
    program.print(stream, mlir::OpPrintingFlags().elideLargeElementsAttrs(64));
    stream.close();
    if (!stream.has_error()) return success();
    error = stream.error();
    stream.clear_error();  // or the stream's destructor ends the process
    return mlir::emitError(mlir::UnknownLoc::get(module_.getContext()))
           << "cannot write " << path << ": " << error.message();
  }

  // Exporters that fold constants take the names of weights with them.
  void remarkOnConstants() {
    FuncOp main = module_.lookupSymbol<FuncOp>("main");
    int64_t constants = 0;
    for (unsigned i = 0; i < main.getNumArguments(); ++i) {
      auto kind = main.getArgAttrOfType<mlir::StringAttr>(i, nn::kKindAttr);
      constants += kind && kind.getValue() == "constant" &&
                   llvm::isa<mlir::FloatType>(
                       mlir::getElementTypeOrSelf(main.getArgumentTypes()[i]));
    }
    if (constants == 0) return;
    mlir::emitRemark(module_.getLoc())
        << constants
        << (constants == 1 ? " weight has no name of its own and is a constant"
                           : " weights have no names of their own and are "
                             "constants")
        << ", which training does not change; an export with "
           "training=TrainingMode.TRAINING and without constant folding keeps "
           "the names";
  }

  LogicalResult write(std::string code) {
    report_.measureEntries(module_);
    emit::EmitOptions emit_options;
    if (mlir::failed(describePipeline(emit_options))) return failure();
    emit_options.target = options_.target;
    emit_options.cpu_features = gpu().empty()
                                    ? kernels::requiredFeatures(options_.cpu)
                                    : kernels::kPtxFeatures;
    llvm::json::Value summary = report_.toJson();
    for (const char* unknown_yet : {"artifact_bytes", "seconds"})
      summary.getAsObject()->erase(unknown_yet);
    (*summary.getAsObject())["reasons"] = reasonsOf(module_);
    llvm::json::Object cycles;
    for (const auto& code : kernels::cyclesOfCode(module_))
      cycles[code.getKey().str()] = code.getValue();
    (*summary.getAsObject())["kernel_cycles"] = std::move(cycles);
    emit_options.summary_json = llvm::formatv("{0}", summary).str();
    emit_options.source_folder = options_.source_folder;
    emit_options.artifact_folder =
        std::filesystem::path(options_.output).parent_path().string();
    emit_options.embed_weights = options_.embed_weights;
    emit_options.states_on_host = statesOnHost();
    auto parts = emit::buildArtifact(module_, std::move(code), emit_options);
    if (mlir::failed(parts)) return failure();
    absl::Status written = program::WriteArtifact(options_.output, *parts);
    if (!written.ok())
      return mlir::emitError(mlir::UnknownLoc::get(module_.getContext()))
             << std::string(written.message());
    std::error_code error;
    report_.artifact_bytes = std::filesystem::file_size(options_.output, error);
    return success();
  }

  LogicalResult describePipeline(emit::EmitOptions& emit_options) {
    if (!merged_) return success();
    emit_options.pipeline = dist::numberedAxes(
        dist::findMesh(module_),
        sharding::axesAttr(module_.getContext(), plan::DepthAxes(*plan_),
                           plan_->mesh));
    emit_options.inputs = ports_.inputs;
    emit_options.outputs = ports_.outputs;
    auto schedule = plan::ScheduleOf(*plan_, train() != nullptr);
    if (!schedule.ok()) return failure();
    emit_options.schedule = core::WriteScheduleCsv(*schedule);
    return success();
  }

  // What is compiled: of a pipeline each rank's module, from cut() to merge().
  mlir::ModuleOp module_;
  std::vector<mlir::ModuleOp> programs_;
  Programs ranks_;
  PortNames ports_;  // of a pipeline
  mlir::OwningOpRef<mlir::ModuleOp> merged_, restarted_;
  bool cuts_by_time_ = false;  // whatever the limit of memory
  const CompileOptions& options_;
  std::optional<plan::Plan> plan_;
  TrainOptions train_;  // with what the plan says of it
  const double start_;
  int dumps_ = 0;
  Fault fault_ = Fault::kUser;
  CompileReport report_;
};

}  // namespace

FailureOr<CompileReport> compileToFile(mlir::ModuleOp module,
                                       const CompileOptions& options,
                                       Fault* fault) {
  Compilation compilation(module, options);
  FailureOr<CompileReport> report = compilation.run();
  if (fault) *fault = compilation.fault();
  return report;
}

}  // namespace partita::driver
