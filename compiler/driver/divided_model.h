// A model divided by a plan, to write the plan down: what annotate and
// partition_specs share.
#ifndef PARTITA_COMPILER_DRIVER_DIVIDED_MODEL_H_
#define PARTITA_COMPILER_DRIVER_DIVIDED_MODEL_H_

#include <optional>
#include <string>
#include <utility>

#include "compiler/core/sharding.h"
#include "compiler/driver/import_model.h"
#include "compiler/driver/run_phase.h"
#include "compiler/plan/plan.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

namespace partita::driver {

struct DividedModel {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  plan::Plan plan;
  core::Mesh mesh;

  mlir::func::FuncOp main() const {
    return module.get().lookupSymbol<mlir::func::FuncOp>("main");
  }
  // Null if the value has none.
  std::optional<core::Sharding> shardingOf(mlir::Value value) const;
  // The type and sharding of an argument's tensor in the model's file, of which
  // the argument may be a view in another shape. Without a sharding if the
  // view's cannot be said of the file's tensor.
  std::pair<mlir::RankedTensorType, std::optional<core::Sharding>> storedTensor(
      unsigned argument) const;
};

// Imports the model, and divides it as compiling would, but without outlining
// layers. Without a plan, the model's own shardings apply. `imported` sees the
// module before any pass. Fails after diagnostics; `fault` says whose fault it
// is.
mlir::FailureOr<DividedModel> divideModel(
    const std::string& model, const ImportOptions& import,
    const std::optional<plan::Plan>& plan, mlir::MLIRContext* context,
    Fault& fault, llvm::function_ref<void(mlir::ModuleOp)> imported = nullptr);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_DIVIDED_MODEL_H_
