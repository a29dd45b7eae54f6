// Runs the compiler's phases on a model, in their one order, from import to
// program. Compiling, explaining, verifying, annotating, inspecting, choosing
// recomputation, balancing stages and pricing a plan all run this list, each up
// to the milestone that it needs.
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
#include "runtime/program/target.h"

namespace partita::driver {

// States of a model between phases. Dumps (--dump-dir) are finer. A step that
// only training or dividing needs does nothing without it.
enum class Milestone {
  kImported,
  kLossAttached,
  kSimplified,   // composites, layers as functions, the precision
  kExposed,      // each factor that can be divided is a dimension
  kStaged,       // dimensions have names, operations pipeline stages
  kStep,         // gradients and updates: a whole step
  kDivided,      // each tensor's sharding is decided
  kCut,          // one module per pipeline rank
  kPartitioned,  // on local shapes
  kLowered,      // exec: library calls, collectives, kernels
  kMerged,       // one module for all ranks
  kOrdered,      // the order of each device's work is final
  kCoded,        // launches have their sizes; machine code if requested
  kPlanned,      // memory of all work
};

// Options to divide a model and judge the result: prints no progress, writes
// nothing. `train` may be null.
CompileOptions optionsToJudge(const plan::Plan& plan,
                              const TrainOptions* train);

class Compilation {
 public:
  // `module` is at milestone `at`, or is treated as if it were. It is lowered
  // in place and must outlive this. Without `machine_code` this is a trial:
  // launches are described, but no code is generated, and the output of passes
  // is not verified.
  Compilation(mlir::ModuleOp module, const CompileOptions& options,
              Milestone at = Milestone::kImported, bool machine_code = true);
  // Owns its module, as trials own their copy of a model.
  Compilation(mlir::OwningOpRef<mlir::ModuleOp> module,
              const CompileOptions& options,
              Milestone at = Milestone::kImported, bool machine_code = true);

  // Runs the phases up to `milestone` that have not run yet. After a failure,
  // diagnostics have been emitted and fault() says whose fault it is.
  mlir::LogicalResult runTo(Milestone milestone);
  // The same; sets `fault` to kOurs if a phase has a bug.
  mlir::LogicalResult runTo(Milestone milestone, Fault& fault);

  // The current modules: one, or one per pipeline rank between kCut and
  // kMerged.
  llvm::ArrayRef<mlir::ModuleOp> programs() const { return programs_; }
  mlir::ModuleOp module() const { return programs_.front(); }

  // Keeps `module`, which is being compiled, alive as long as this.
  void own(mlir::OwningOpRef<mlir::ModuleOp> module) {
    owned_.push_back(std::move(module));
  }
  // Continues the report, the start time and the dump numbers of `before`.
  void continueAfter(const Compilation& before);
  // Runs and times `body` as a phase, then dumps the IR.
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
  bool onGpu() const { return program::IsGpuTarget(options_.target); }
  // True if libraries of the target multiply floats of 8 bits.
  bool hasFloat8() const;
  const std::string& machineCode() const { return code_; }
  // True if the plan divides depth.
  bool isPipeline() const;
  // The users' names of the inputs and outputs of a pipeline.
  const PortNames& ports() const { return ports_; }
  // Paddings found at kDivided; empty unless listPaddings() was called.
  const std::vector<partition::Padding>& paddings() const { return paddings_; }
  // Makes kDivided list paddings.
  void listPaddings() { lists_paddings_ = true; }
  // Takes passes from `managers`, which must outlive this object and have the
  // same context.
  void usePassesOf(PhaseManagers& managers) { managers_ = &managers; }
  // Keeps the shardings beside the module, and not in its attributes, between
  // kDivided and kPartitioned.
  void keepShardingsAside() { shardings_aside_ = true; }
  // Cuts stages by work even if the plan has a memory limit.
  void cutByTime() { cuts_by_time_ = true; }
  // Leaves all layers in @main when simplifying.
  void keepLayersInline() { outlines_layers_ = false; }
  // Sets the times that balance stages which the plan does not list.
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
  mlir::LogicalResult dump(mlir::ModuleOp program, const std::string& path);

  std::vector<mlir::OwningOpRef<mlir::ModuleOp>> owned_;
  // Pipelines only: the module of each rank, then all of them merged.
  Programs ranks_;
  mlir::OwningOpRef<mlir::ModuleOp> merged_;
  std::vector<mlir::ModuleOp> programs_;
  const CompileOptions options_;
  std::optional<plan::Plan> plan_;
  TrainOptions train_;  // with the plan's options for training
  Milestone at_;
  const bool machine_code_;
  bool cuts_by_time_ = false, lists_paddings_ = false, outlines_layers_ = true;
  bool shardings_aside_ = false;
  PhaseManagers* managers_ = nullptr;
  pipeline::StageTimes times_;
  std::vector<partition::Padding> paddings_;
  // Shardings between kDivided and kPartitioned, if they are kept aside.
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
