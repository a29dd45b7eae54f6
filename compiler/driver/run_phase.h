// Runs the compiler's phases, and says whose fault a failure is.
#ifndef PARTITA_COMPILER_DRIVER_RUN_PHASE_H_
#define PARTITA_COMPILER_DRIVER_RUN_PHASE_H_

#include <string>

#include "compiler/driver/model_phases.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LLVM.h"

namespace partita::driver {

// Tells whose fault a failure is: the user's, whose input cannot be compiled or
// written, or that of a phase that failed on a model it should accept.
enum class Fault { kUser, kOurs };

// Fails after diagnostics. Sets `fault` to kOurs and reports a bug, unless the
// phase is one that checks the user's input. Without `verify`, the output of
// passes is not verified, which takes a fifth of a compilation. Use that for
// trials of plans, one of which is compiled in the end.
mlir::LogicalResult runPhase(mlir::ModuleOp module, const Phase& phase,
                             Fault& fault, bool verify = true);

// Reports that the phase of this name has a bug. Always fails.
mlir::LogicalResult reportBug(mlir::ModuleOp module, const std::string& name,
                              Fault& fault);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_RUN_PHASE_H_
