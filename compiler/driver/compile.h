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

// Returns an error if `options` name an unknown processor or target; else an
// empty text.
std::string checkMachine(const CompileOptions& options);

// Creates the folder for dumps. Returns an error if `options` are wrong, else
// an empty text: the processor is unknown, the folder cannot be created, the
// plan has microbatches but nothing is trained, or a schedule excludes an
// option.
std::string prepareOptions(const CompileOptions& options);

// Compiles a model from kSimplified to kPlanned, in place. Chooses
// recomputation and stages by the memory limit, checks budgets, and refuses a
// program over the limit. Emits diagnostics on failure.
mlir::FailureOr<std::unique_ptr<Compilation>> compileProgram(
    Compilation& simplified, bool machine_code, Fault& fault);

// The artifact of a compilation at kPlanned; without code if none was
// generated.
mlir::FailureOr<program::ArtifactParts> artifactOf(Compilation& compilation);

// Compiles `module`, which is lowered in place, and writes the artifact to
// options.output. Emits diagnostics on failure and then writes nothing;
// `fault`, if given, says whose fault it is.
mlir::FailureOr<CompileReport> compileToFile(mlir::ModuleOp module,
                                             const CompileOptions& options,
                                             Fault* fault = nullptr);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_COMPILE_H_
