// Compiles the steps of 0/1 Adam: a folder with one artifact per kind of step,
// which runtime/session/zero_one.h reads.
#ifndef PARTITA_COMPILER_DRIVER_ZERO_ONE_H_
#define PARTITA_COMPILER_DRIVER_ZERO_ONE_H_

#include "compiler/driver/compile_options.h"
#include "compiler/driver/compile_report.h"
#include "compiler/driver/run_phase.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::driver {

// Creates the folder options.output and compiles copies of `module` into it.
// Returns the report of the exchange step, with the total of seconds and bytes,
// and one memory table for the three steps together, which must be within the
// limit. Emits diagnostics on failure; `fault` says whose fault it is.
mlir::FailureOr<CompileReport> compileZeroOne(mlir::ModuleOp module,
                                              const CompileOptions& options,
                                              Fault& fault);

// Says on the console that one kind of step is described, if there are several.
void tellStepOf(const TrainOptions& train);

// If `path` is a folder of compileZeroOne, an error that names its programs;
// else an empty text.
std::string refuseFolderOfSteps(const std::string& path);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_ZERO_ONE_H_
