// A model on its way from import to a program: the compiler's phases in their
// one order. Compiling, explaining, verifying, annotating, inspecting, choosing
// recomputation, balancing stages and pricing a plan run this list, each as far
// as it needs.
#ifndef PARTITA_COMPILER_DRIVER_COMPILATION_H_
#define PARTITA_COMPILER_DRIVER_COMPILATION_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/driver/compile_options.h"
#include "compiler/driver/compile_report.h"
#include "compiler/driver/cut_model.h"
#include "compiler/driver/run_phase.h"
#include "compiler/partition/padding_report.h"
#include "compiler/sharding/problem.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace partita::driver {

// Where a model stands between phases. Dumps (--dump-dir) have finer steps. A
// step to a milestone that only training or dividing needs does nothing without
// it.
enum class Milestone {
  kImported,
  kLossAttached,
  kSimplified,   // composites, layers as functions, the precision
  kExposed,      // each factor that can be divided is a dimension
  kStaged,       // dimensions have names, operations pipeline stages
  kStep,         // gradients and updates: a whole step
  kDivided,      // each tensor's sharding is decided
  kCut,          // one module a pipeline rank
  kPartitioned,  // on local shapes
  kLowered,      // exec: library calls, collectives, kernels
  kMerged,       // one module for all ranks
  kCoded,        // launches know how they run; machine code where asked for
  kPlanned,      // order and memory of all work
};

// Options of a model that is divided to be judged, not to be run: silent, and
// nothing is written. `train` may be null.
CompileOptions optionsToJudge(const plan::Plan& plan,
                              const TrainOptions* train);

class Compilation {
 public:
  // `module` stands at `at`, or is taken as if it did, and is lowered in place;
  // it must outlive this. With `machine_code` false launches are described and
  // no code is generated, and what passes leave is not verified: it is a trial.
  Compilation(mlir::ModuleOp module, const CompileOptions& options,
              Milestone at = Milestone::kImported, bool machine_code = true);
  // Owns it, as trials do their copy of a model.
  Compilation(mlir::OwningOpRef<mlir::ModuleOp> module,
              const CompileOptions& options,
              Milestone at = Milestone::kImported, bool machine_code = true);

  // Runs what is missing. After a failure, diagnostics have been emitted and
  // fault() says whose fault it is.
  mlir::LogicalResult runTo(Milestone milestone);
  // The same; `fault` becomes kOurs where a phase has a bug.
  mlir::LogicalResult runTo(Milestone milestone, Fault& fault);

  // The modules as they stand: one, or one for each rank of a pipeline between
  // kCut and kMerged.
  llvm::ArrayRef<mlir::ModuleOp> programs() const { return programs_; }
  mlir::ModuleOp module() const { return programs_.front(); }

  // Keeps `module`, which is compiled, as long as this.
  void own(mlir::OwningOpRef<mlir::ModuleOp> module) {
    owned_.push_back(std::move(module));
  }
  // Counts what it numbers and reports behind what `before` did.
  void continueAfter(const Compilation& before);
  // Runs and times `body` as a phase, then dumps what it left.
  mlir::LogicalResult phase(const std::string& name,
                            llvm::function_ref<mlir::LogicalResult()> body);
  mlir::LogicalResult dump(const std::string& name);

  Fault fault() const { return fault_; }
  CompileReport& report() { return report_; }
  const CompileOptions& options() const { return options_; }
  const plan::Plan* plan() const { return plan_ ? &*plan_ : nullptr; }
  // Null: inference.
  const TrainOptions* train() const {
    return train_.optimizer.empty() ? nullptr : &train_;
  }
  plan::Precision precision() const;
  bool onGpu() const { return !chip().empty(); }
  // "sm_90"; empty: a CPU.
  std::string chip() const;
  const std::string& machineCode() const { return code_; }
  // Whether depth is divided.
  bool isPipeline() const;
  // What users call the inputs and outputs of a pipeline.
  const PortNames& ports() const { return ports_; }
  // Found when shardings were decided (kDivided).
  const std::vector<partition::Padding>& paddings() const { return paddings_; }
  // Dividing keeps them; off unless asked for.
  void listPaddings() { lists_paddings_ = true; }
  // Takes passes from `managers`, which must outlive this and be of the same
  // context.
  void usePassesOf(PhaseManagers& managers) { managers_ = &managers; }
  // Between kDivided and kPartitioned the module has no shardings on it.
  void keepShardingsAside() { shardings_aside_ = true; }
  // Stages are of equal work whatever the plan's limit of memory says.
  void cutByTime() { cuts_by_time_ = true; }
  // Simplifying leaves each layer in @main.
  void keepLayersInline() { outlines_layers_ = false; }
  // What stages that the plan does not list are balanced by.
  void setStageTimes(pipeline::StageTimes times) { times_ = std::move(times); }

 private:
  mlir::LogicalResult runPhases(const std::vector<Phase>& phases);
  mlir::LogicalResult simplify();
  mlir::LogicalResult stage();
  mlir::LogicalResult divide();
  mlir::LogicalResult cut();
  mlir::LogicalResult merge();
  mlir::LogicalResult generateCode();
  mlir::LogicalResult planMemory();
  mlir::LogicalResult generate();
  mlir::LogicalResult dump(mlir::ModuleOp program, const std::string& path);

  std::vector<mlir::OwningOpRef<mlir::ModuleOp>> owned_;
  // Of a pipeline: each rank's module, then all of them as one.
  Programs ranks_;
  mlir::OwningOpRef<mlir::ModuleOp> merged_;
  std::vector<mlir::ModuleOp> programs_;
  const CompileOptions options_;
  std::optional<plan::Plan> plan_;
  TrainOptions train_;  // with what the plan says of it
  Milestone at_;
  const bool machine_code_;
  bool cuts_by_time_ = false, lists_paddings_ = false, outlines_layers_ = true;
  bool shardings_aside_ = false;
  PhaseManagers* managers_ = nullptr;
  pipeline::StageTimes times_;
  std::vector<partition::Padding> paddings_;
  // Shardings between kDivided and kPartitioned, where nobody reads them off
  // the module.
  std::shared_ptr<sharding::Decided> decided_;
  PortNames ports_;
  std::string code_;
  double start_;
  int dumps_ = 0;
  Fault fault_ = Fault::kUser;
  CompileReport report_;
};

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_COMPILATION_H_
