// Runs the compiler's phases, and says whose fault it is where one fails.
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

// Whose fault it is that a model was not compiled or judged: the user's, who
// gave something that cannot be compiled or written, or that of a phase that
// failed on a model it should have taken.
enum class Fault { kUser, kOurs };

// Pass managers of the phases that have run in one context, for the next
// modules: a canonicalizer collects the patterns of all operations when it is
// made, which takes longer than running it on a small module.
class PhaseManagers {
 public:
  // That of a phase with `options`.
  mlir::PassManager& of(const Phase& phase, mlir::MLIRContext* context);

 private:
  std::map<std::pair<std::string, std::string>,
           std::unique_ptr<mlir::PassManager>>
      managers_;
};

// Fails after diagnostics. Sets `fault` to kOurs, and says so, unless the phase
// is one that answers what the user says. Without `verify` what passes leave is
// not verified, which takes a fifth of a compilation: for trials of plans, of
// which one is compiled in the end.
// `managers`, where given, supplies the passes.
mlir::LogicalResult runPhase(mlir::ModuleOp module, const Phase& phase,
                             Fault& fault, bool verify = true,
                             PhaseManagers* managers = nullptr);

// Says that the phase of this name has a bug; fails always.
mlir::LogicalResult blameUs(mlir::ModuleOp module, const std::string& name,
                            Fault& fault);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_RUN_PHASE_H_
