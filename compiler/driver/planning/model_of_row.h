// A transformer of a few numbers as a model: rows of sizes (`partita plan
// --row`) are priced as any model is.
#ifndef PARTITA_COMPILER_DRIVER_PLANNING_MODEL_OF_ROW_H_
#define PARTITA_COMPILER_DRIVER_PLANNING_MODEL_OF_ROW_H_

#include <cstdint>

#include "compiler/planner/transformer/architecture.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

namespace partita::driver {

// The family's model with these sizes, of `batch` sequences, imported for
// training. Null after diagnostics where no family has them, as models with
// experts.
mlir::OwningOpRef<mlir::ModuleOp> modelOfRow(
    const planner::Architecture& architecture, int64_t batch,
    mlir::MLIRContext* context);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PLANNING_MODEL_OF_ROW_H_
