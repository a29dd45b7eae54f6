// Runs each phase with a pass manager of its own.
#include "compiler/driver/run_phase.h"

#include "llvm/ADT/STLExtras.h"

namespace partita::driver {

mlir::LogicalResult runPhase(mlir::ModuleOp module, const Phase& phase,
                             Fault& fault, bool verify) {
  mlir::PassManager manager(module.getContext());
  manager.enableVerifier(verify);
  phase.build(manager);
  if (mlir::succeeded(manager.run(module))) return mlir::success();
  // These phases report errors in the user's names and entries themselves.
  if (llvm::is_contained({"loss", "rules", "differentiate", "name", "shard",
                          "split-batch", "stages"},
                         phase.name))
    return mlir::failure();
  return reportBug(module, phase.name, fault);
}

mlir::LogicalResult reportBug(mlir::ModuleOp module, const std::string& name,
                              Fault& fault) {
  fault = Fault::kOurs;
  return mlir::emitError(mlir::UnknownLoc::get(module.getContext()))
         << "phase '" << name
         << "' failed on a model that the compiler had accepted. This is a bug "
            "of ours, please report it, with the model or the IR that "
            "--dump-dir writes";
}

}  // namespace partita::driver
