// Runs the compiler's phases, and says whose fault a failure is.
#ifndef PARTITA_COMPILER_DRIVER_RUN_PHASE_H_
#define PARTITA_COMPILER_DRIVER_RUN_PHASE_H_

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "compiler/driver/model_phases.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LLVM.h"

namespace partita::driver {

// Tells whose fault a failure is: the user's, whose input cannot be compiled or
// written, or that of a phase that failed on a model it should accept.
enum class Fault { kUser, kOurs };

// Pass managers of phases that have run in one context, to be reused for
// further modules. Creating a canonicalizer collects the patterns of all
// operations, which takes longer than running it on a small module.
class PhaseManagers {
 public:
  // The manager of a phase with `options`.
  mlir::PassManager& of(const Phase& phase, mlir::MLIRContext* context);

 private:
  // By the phase's name and options.
  std::map<std::pair<std::string, std::string>,
           std::unique_ptr<mlir::PassManager>>
      managers_;
};

// Fails after diagnostics. Sets `fault` to kOurs and reports a bug, unless the
// phase is one that checks the user's input. Without `verify`, the output of
// passes is not verified, which takes a fifth of a compilation. Use that for
// trials of plans, one of which is compiled in the end. Reuses the passes of
// `managers`, unless it is null.
mlir::LogicalResult runPhase(mlir::ModuleOp module, const Phase& phase,
                             Fault& fault, bool verify = true,
                             PhaseManagers* managers = nullptr);

// Reports that the phase of this name has a bug. Always fails.
mlir::LogicalResult reportBug(mlir::ModuleOp module, const std::string& name,
                              Fault& fault);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_RUN_PHASE_H_
