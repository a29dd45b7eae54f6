#include "compiler/driver/divided_model.h"

#include "compiler/driver/check_model.h"
#include "compiler/driver/compilation.h"
#include "compiler/driver/model_plan.h"
#include "compiler/sharding/convert.h"
#include "compiler/sharding/parameter_views.h"

namespace partita::driver {

using mlir::failure;
using mlir::RankedTensorType;

std::optional<core::Sharding> DividedModel::shardingOf(
    mlir::Value value) const {
  auto attr = sharding::shardingOf(value);
  if (!attr) return std::nullopt;
  auto found = sharding::toCore(attr, mesh);
  if (mlir::failed(found)) return std::nullopt;
  return std::move(*found);
}

std::pair<RankedTensorType, std::optional<core::Sharding>>
DividedModel::storedTensor(unsigned argument) const {
  mlir::func::FuncOp function = main();
  const mlir::Value value = function.getArgument(argument);
  auto type = llvm::cast<RankedTensorType>(value.getType());
  std::optional<core::Sharding> found = shardingOf(value);
  auto file =
      function.getArgAttrOfType<mlir::TypeAttr>(argument, nn::kViewOfAttr);
  if (!file || !found) return {type, found};
  const core::Sharding viewed = std::move(*found);
  const RankedTensorType view = type;
  type = llvm::cast<RankedTensorType>(file.getValue());
  if (!sharding::viewSharding(mesh, view.getShape(), type.getShape(), viewed,
                              *found)
           .empty())
    found.reset();
  return {type, found};
}

mlir::FailureOr<DividedModel> divideModel(
    const std::string& model, const ImportOptions& import,
    const std::optional<plan::Plan>& plan, mlir::MLIRContext* context,
    Fault& fault, llvm::function_ref<void(mlir::ModuleOp)> imported) {
  fault = Fault::kUser;
  DividedModel result;
  ImportOptions options = import;
  // A plan replaces the annotations of an ONNX file, unless a configuration was
  // requested as well.
  if (plan && options.onnx_configuration.empty() &&
      llvm::StringRef(model).ends_with(".onnx"))
    options.onnx_configuration = "none";
  result.module = importModel(model, options, context);
  if (!result.module || mlir::failed(checkModel(*result.module)))
    return failure();
  const std::optional<plan::Plan> found =
      plan ? plan : planOfModel(*result.module, model);
  if (!found)
    return mlir::emitError(mlir::FileLineColLoc::get(context, model, 0, 0))
           << "expected a plan to write down: --plan FILE, or --mesh and "
              "--shard; found none, and no shardings in the model";
  result.plan = *found;
  if (imported) imported(*result.module);

  CompileOptions judged = optionsToJudge(result.plan, /*train=*/nullptr);
  judged.plan->precision.reset();  // tensors have the file's types
  Compilation compilation(*result.module, judged);
  compilation.keepLayersInline();
  if (mlir::failed(compilation.runTo(Milestone::kDivided, fault)))
    return failure();
  auto mesh = sharding::meshOf(*result.module);
  if (mlir::failed(mesh)) return failure();
  result.mesh = std::move(*mesh);
  return result;
}

}  // namespace partita::driver
