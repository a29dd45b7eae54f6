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
// Returns the report of the exchange step, with the total of seconds and bytes.
// Emits diagnostics on failure; `fault` says whose fault it is.
mlir::FailureOr<CompileReport> compileZeroOne(mlir::ModuleOp module,
                                              const CompileOptions& options,
                                              Fault& fault);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_ZERO_ONE_H_
