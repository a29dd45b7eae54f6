// The plan that comes with a model.
#ifndef PARTITA_COMPILER_DRIVER_MODEL_PLAN_H_
#define PARTITA_COMPILER_DRIVER_MODEL_PLAN_H_

#include <optional>
#include <string>

#include "compiler/plan/plan.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::driver {

// If the user gives no plan, a module with a mesh (e.g. from annotations of an
// ONNX model) is divided over it by its own annotations alone. None if the
// module has no mesh or is already partitioned. `model` is its path, for the
// remark.
std::optional<plan::Plan> planOfModel(mlir::ModuleOp module,
                                      const std::string& model = "");

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_MODEL_PLAN_H_
