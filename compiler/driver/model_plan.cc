// A plan of the model's mesh, without entries.
#include "compiler/driver/model_plan.h"

#include "compiler/sharding/convert.h"

namespace partita::driver {

std::optional<plan::Plan> planOfModel(mlir::ModuleOp module,
                                      const std::string& model) {
  if (module.getOps<dist::MeshOp>().empty()) return std::nullopt;
  auto mesh = sharding::meshOf(module);
  if (mlir::failed(mesh)) return std::nullopt;
  plan::Plan plan;
  plan.origin = "the model's annotations";
  plan.mesh = std::move(*mesh);
  mlir::emitRemark(module.getLoc())
      << "the model is divided as its own annotations say, over the mesh "
      << plan::ToString(plan.mesh)
      << (llvm::StringRef(model).ends_with(".onnx")
              ? "; to read it without them: --onnx-configuration none"
              : "");
  return plan;
}

}  // namespace partita::driver
