// The plan that a model brings with it.
#ifndef PARTITA_COMPILER_DRIVER_MODEL_PLAN_H_
#define PARTITA_COMPILER_DRIVER_MODEL_PLAN_H_

#include <optional>

#include "compiler/plan/plan.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::driver {

// A module with a mesh (annotations of an ONNX model, say) is divided over it
// where the user gives no plan: its own annotations, and nothing else. None
// where it has no mesh.
std::optional<plan::Plan> planOfModel(mlir::ModuleOp module);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_MODEL_PLAN_H_
