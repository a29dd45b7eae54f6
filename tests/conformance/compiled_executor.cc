// Compiles, loads and runs like a user, once per test.
#include "tests/conformance/compiled_executor.h"

#include <iostream>

#include "compiler/driver/check_model.h"
#include "compiler/driver/model_plan.h"
#include "compiler/driver/registry.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "tests/e2e/compiled_model.h"

namespace partita::conformance {
namespace {

using Model = absl::StatusOr<std::unique_ptr<e2e::CompiledModel>>;

mlir::FailureOr<std::vector<nn::Tensor>> run(
    mlir::ModuleOp module, llvm::ArrayRef<nn::Tensor> inputs,
    llvm::function_ref<Model(mlir::ModuleOp)> compile) {
  mlir::DialectRegistry registry;
  driver::registerDialects(registry);
  module.getContext()->appendDialectRegistry(registry);
  module.getContext()->loadAllAvailableDialects();
  auto main = module.lookupSymbol<mlir::func::FuncOp>("main");
  const llvm::SmallVector<mlir::Type> types(main.getResultTypes());

  auto fail = [](const absl::Status& status) {
    std::cerr << status << "\n";
    return mlir::failure();
  };
  auto model = compile(module);
  if (!model.ok()) return fail(model.status());
  std::vector<e2e::HostTensor> values;
  const auto& specs = (*model)->inputs();
  if (specs.size() != inputs.size())
    return fail(
        absl::InternalError("the artifact has another count of inputs"));
  for (auto [spec, input] : llvm::zip_equal(specs, inputs)) {
    const std::vector<char> bytes = input.toBytes();
    values.push_back({spec.dtype, spec.shape, {bytes.begin(), bytes.end()}});
  }
  auto outputs = (*model)->Run(values);
  if (!outputs.ok()) return fail(outputs.status());
  std::vector<nn::Tensor> results;
  for (auto [output, type] : llvm::zip_equal(*outputs, types)) {
    auto tensor = nn::Tensor::fromBytes(
        llvm::cast<mlir::RankedTensorType>(type), output.bytes);
    if (mlir::failed(tensor)) return mlir::failure();
    results.push_back(*tensor);
  }
  return results;
}

}  // namespace

Executor compiledExecutor(const std::string& folder) {
  return [folder](mlir::ModuleOp module, llvm::ArrayRef<nn::Tensor> inputs) {
    return run(module, inputs, [&](mlir::ModuleOp given) {
      return e2e::CompiledModel::Make(given, folder, "backend", 1);
    });
  };
}

Executor dividedExecutor(const std::string& folder) {
  return [folder](mlir::ModuleOp module, llvm::ArrayRef<nn::Tensor> inputs) {
    return run(module, inputs, [&](mlir::ModuleOp given) -> Model {
      const auto plan = driver::planOfModel(given, "divided");
      if (!plan)
        return absl::InvalidArgumentError("expected a module with a mesh");
      return e2e::CompiledModel::MakeDivided(given, folder, "divided", *plan);
    });
  };
}

std::vector<std::string> compilerLacks(mlir::ModuleOp module) {
  std::vector<std::string> names;
  for (const auto& [name, loc] : driver::unsupportedTypes(module))
    names.push_back("type " + name);
  return names;
}

}  // namespace partita::conformance
