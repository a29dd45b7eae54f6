// The plan that a model brings with it.
#ifndef PARTITA_COMPILER_DRIVER_MODEL_PLAN_H_
#define PARTITA_COMPILER_DRIVER_MODEL_PLAN_H_

#include <optional>
#include <string>

#include "compiler/plan/plan.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::driver {

// A module with a mesh (annotations of an ONNX model, say) is divided over it
// where the user gives no plan: its own annotations, and nothing else. None
// where it has no mesh. `model` is where it was read from, for the remark.
std::optional<plan::Plan> planOfModel(mlir::ModuleOp module,
                                      const std::string& model = "");

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_MODEL_PLAN_H_
