// Imports a StableHLO program, as JAX exports it, as an nn module.
#ifndef PARTITA_FRONTENDS_STABLEHLO_IMPORTER_H_
#define PARTITA_FRONTENDS_STABLEHLO_IMPORTER_H_

#include <string>
#include <string_view>

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

namespace partita::stablehlo {

struct ImportOptions {
  // Leaves out meshes, shardings and constraints, so that the model is not
  // divided, or as a plan says.
  bool ignore_shardings = false;
};

// True if the file holds MLIR bytecode, or a program that jax.export
// serialized, whole or damaged. False if it cannot be read.
bool isStablehlo(const std::string& path);

// Returns null after emitting diagnostics. The context must have the nn
// dialect's reference models registered (nn::registerExternalModels), because
// the importer folds loop counters and shapes with them.
mlir::OwningOpRef<mlir::ModuleOp> importStablehlo(const std::string& path,
                                                  const ImportOptions& options,
                                                  mlir::MLIRContext* context);

// The same from the file's bytes, which are read only during the call.
mlir::OwningOpRef<mlir::ModuleOp> importStablehloBytes(
    std::string_view bytes, const std::string& path,
    const ImportOptions& options, mlir::MLIRContext* context);

// The same from operations that were read with loadPortableDialects and are not
// verified. Errors name `producer`.
mlir::OwningOpRef<mlir::ModuleOp> importStablehloProgram(
    mlir::ModuleOp program, const std::string& producer, mlir::Location loc,
    const ImportOptions& options);

}  // namespace partita::stablehlo

#endif  // PARTITA_FRONTENDS_STABLEHLO_IMPORTER_H_
