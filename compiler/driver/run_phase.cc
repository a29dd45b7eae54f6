// Runs each phase with a pass manager of its own.
#include "compiler/driver/run_phase.h"

#include "llvm/ADT/STLExtras.h"

namespace partita::driver {

mlir::PassManager& PhaseManagers::of(const Phase& phase,
                                     mlir::MLIRContext* context) {
  auto& manager = managers_[{phase.name, *phase.options}];
  if (!manager) {
    manager = std::make_unique<mlir::PassManager>(context);
    phase.build(*manager);
  }
  return *manager;
}

mlir::LogicalResult runPhase(mlir::ModuleOp module, const Phase& phase,
                             Fault& fault, bool verify,
                             PhaseManagers* managers) {
  std::optional<mlir::PassManager> made;
  if (!managers || !phase.options) {
    made.emplace(module.getContext());
    phase.build(*made);
  }
  mlir::PassManager& manager =
      made ? *made : managers->of(phase, module.getContext());
  manager.enableVerifier(verify);
  if (mlir::succeeded(manager.run(module))) return mlir::success();
  // These phases report errors in the user's names and entries themselves.
  if (llvm::is_contained({"loss", "precision", "rules", "differentiate", "name",
                          "shard", "split-batch", "stages"},
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
