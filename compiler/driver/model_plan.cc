// Makes a plan with the model's mesh and without entries.
#include "compiler/driver/model_plan.h"

#include "compiler/plan/names.h"
#include "compiler/sharding/convert.h"
#include "dialects/dist/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::driver {
namespace {

// True if @main has local types already.
bool isPartitioned(mlir::ModuleOp module) {
  auto main = module.lookupSymbol<mlir::func::FuncOp>("main");
  if (!main) return false;
  for (unsigned i = 0; i < main.getNumArguments(); ++i)
    if (main.getArgAttr(i, dist::kGlobalTypeAttr)) return true;
  for (unsigned i = 0; i < main.getNumResults(); ++i)
    if (main.getResultAttr(i, dist::kGlobalTypeAttr)) return true;
  return false;
}

}  // namespace

std::optional<plan::Plan> planOfModel(mlir::ModuleOp module,
                                      const std::string& model) {
  if (module.getOps<dist::MeshOp>().empty() || isPartitioned(module))
    return std::nullopt;
  auto mesh = sharding::meshOf(module);
  if (mlir::failed(mesh)) return std::nullopt;
  plan::Plan plan;
  plan.origin = "the model's annotations";
  plan.mesh = std::move(*mesh);
  if (auto attention =
          module->getAttrOfType<mlir::StringAttr>("dist.attention"))
    for (const auto& [name, way] : plan::AttentionNames())
      if (name == attention.getValue()) plan.attention = way;
  mlir::emitRemark(module.getLoc())
      << "the model is divided as its own annotations say, over the mesh "
      << plan::ToString(plan.mesh)
      << (llvm::StringRef(model).ends_with(".onnx")
              ? "; to read it without them: --onnx-configuration none"
          : llvm::StringRef(model).ends_with(".mlir")
              ? ""
              : "; to read it without them: --ignore-shardings");
  return plan;
}

}  // namespace partita::driver
