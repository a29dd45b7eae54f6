// Compiles a model to an artifact.
#ifndef PARTITA_COMPILER_DRIVER_COMPILE_H_
#define PARTITA_COMPILER_DRIVER_COMPILE_H_

#include <memory>
#include <string>

#include "compiler/driver/compilation.h"
#include "compiler/driver/compile_options.h"
#include "compiler/driver/compile_report.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LLVM.h"
#include "runtime/program/artifact.h"

namespace partita::driver {

// What is wrong with the processor or the target of `options`: their names are
// unknown; or an empty text.
std::string checkMachine(const CompileOptions& options);

// Makes the folder for dumps. Returns what is wrong with `options` (the
// processor is unknown, the folder cannot be made, the plan asks for
// microbatches of what is not trained, a schedule excludes an option), or an
// empty text.
std::string prepareOptions(const CompileOptions& options);

// The program of a simplified model (at kSimplified, whose module is lowered in
// place), at kPlanned: recomputation and stages are chosen as the limit of
// memory asks, budgets are checked, and a program over the limit is refused.
// Emits diagnostics where it fails.
mlir::FailureOr<std::unique_ptr<Compilation>> compileProgram(
    Compilation& simplified, bool machine_code, Fault& fault);

// What is written of a compilation at kPlanned; without code where it has none.
mlir::FailureOr<program::ArtifactParts> artifactOf(Compilation& compilation);

// Compiles `module` (which is consumed: it is lowered in place) and writes the
// artifact to options.output. Emits diagnostics where it fails; nothing is
// written then, and `fault`, where given, says whose fault it is.
mlir::FailureOr<CompileReport> compileToFile(mlir::ModuleOp module,
                                             const CompileOptions& options,
                                             Fault* fault = nullptr);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_COMPILE_H_
