// Compiles a model to an artifact.
#ifndef PARTITA_COMPILER_DRIVER_COMPILE_H_
#define PARTITA_COMPILER_DRIVER_COMPILE_H_

#include <optional>
#include <string>

#include "compiler/driver/compile_report.h"
#include "compiler/driver/run_phase.h"
#include "compiler/driver/train_options.h"
#include "compiler/plan/plan.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LLVM.h"
#include "runtime/program/artifact.h"

namespace partita::driver {

struct CompileOptions {
  std::string output;  // path of the artifact
  std::string source_folder =
      ".";  // relative weight paths in the module are relative to it
  std::string target = "cpu";      // or "cuda:sm_90", "cuda:sm_80" ...
  std::string cpu = "host";        // an LLVM CPU name, or host
  bool embed_weights = false;      // copy weights into the artifact
  bool overlap = true;             // collectives run beside other work
  std::string dump_dir;            // numbered IR after each phase; empty: none
  std::optional<plan::Plan> plan;  // how to divide; none: one device
  TrainOptions train;              // without an optimizer: inference
  plan::Precision precision =
      plan::Precision::kF32;      // where the plan does not say one
  std::optional<int64_t> memory;  // bytes per device, the same
};

// What is wrong with the processor or the target of `options`: their names are
// unknown; or an empty text.
std::string checkMachine(const CompileOptions& options);

// Makes the folder for dumps. Returns what is wrong with `options` (the
// processor is unknown, the folder cannot be made, the plan asks for
// microbatches of what is not trained, a schedule excludes an option), or an
// empty text.
std::string prepareOptions(const CompileOptions& options);

// Compiles `module` (which is consumed: it is lowered in place) and writes the
// artifact to options.output. Emits diagnostics where it fails; nothing is
// written then, and `fault`, where given, says whose fault it is.
mlir::FailureOr<CompileReport> compileToFile(mlir::ModuleOp module,
                                             const CompileOptions& options,
                                             Fault* fault = nullptr);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_COMPILE_H_
