// Makes a model of a transformer's few sizes, so that rows of sizes (`partita
// plan --row`) are priced like any model.
#ifndef PARTITA_COMPILER_DRIVER_PLANNING_MODEL_OF_ROW_H_
#define PARTITA_COMPILER_DRIVER_PLANNING_MODEL_OF_ROW_H_

#include <cstdint>

#include "compiler/planner/transformer/architecture.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

namespace partita::driver {

// The family's model with these sizes and `batch` sequences, imported for
// training. Null after diagnostics if no family has such sizes, e.g. models
// with experts.
mlir::OwningOpRef<mlir::ModuleOp> modelOfRow(
    const planner::Architecture& architecture, int64_t batch,
    mlir::MLIRContext* context);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PLANNING_MODEL_OF_ROW_H_
