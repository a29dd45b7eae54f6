// Runs single passes, for tests: partita-opt file.mlir --partita-...
#include "compiler/driver/phase_pipelines.h"
#include "compiler/driver/registry.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char** argv) {
  mlir::DialectRegistry registry;
  partita::driver::registerDialects(registry);
  partita::driver::registerPasses();
  partita::driver::registerPhasePipelines();
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "Runs Partita's passes, one by one", registry));
}
