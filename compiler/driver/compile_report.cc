// Counts operations of the model and of the program; writes the counts as JSON.
#include "compiler/driver/compile_report.h"

#include <algorithm>

#include "compiler/driver/memory_limit.h"
#include "dialects/exec/dialect.h"
#include "dialects/exec/entries.h"
#include "dialects/nn/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::driver {

using mlir::func::FuncOp;

void CompileReport::countModel(mlir::ModuleOp module) {
  if (auto name = module.getName()) model = name->str();
  module.walk([&](mlir::Operation* op) {
    operations += !llvm::isa<mlir::ModuleOp, FuncOp, mlir::func::ReturnOp>(op);
  });
  FuncOp main = module.lookupSymbol<FuncOp>("main");
  if (!main) return;
  for (unsigned i = 0; i < main.getNumArguments(); ++i) {
    auto kind = main.getArgAttrOfType<mlir::StringAttr>(i, nn::kKindAttr);
    if (!kind || kind.getValue() != "parameter") continue;
    ++parameters;
    parameter_elements +=
        llvm::cast<mlir::RankedTensorType>(main.getArgumentTypes()[i])
            .getNumElements();
  }
}

void CompileReport::countProgram(mlir::ModuleOp module) {
  for (int64_t* count : {&kernels, &layer_kinds, &launches, &gemms,
                         &convolutions, &layer_calls, &collectives})
    *count = 0;
  for (FuncOp function : module.getOps<FuncOp>()) {
    if (function->hasAttr(exec::kKernelAttr))
      ++kernels;
    else if (function.isPrivate())
      ++layer_kinds;
  }
  module.walk([&](mlir::Operation* op) {
    launches += llvm::isa<exec::LaunchOp>(op);
    gemms += llvm::isa<exec::GemmOp, exec::GroupedGemmOp>(op);
    convolutions += llvm::isa<exec::ConvOp>(op);
    layer_calls += llvm::isa<mlir::func::CallOp>(op);
    collectives += llvm::isa<exec::CollectiveOp>(op);
  });
}

void CompileReport::measureEntries(mlir::ModuleOp module) {
  for (const exec::Entry& entry : exec::entriesOf(module)) {
    arena_bytes = std::max(
        arena_bytes,
        entry.main->getAttrOfType<mlir::IntegerAttr>(exec::kFrameBytesAttr)
            .getInt());
    int64_t derived = 0;
    if (FuncOp init = entry.init)
      for (mlir::Type type : init.getResultTypes())
        derived += exec::bufferBytes(llvm::cast<mlir::RankedTensorType>(type));
    derived_bytes = std::max(derived_bytes, derived);
  }
}

const memory::MemoryTable& CompileReport::memoryTable() const {
  return *std::max_element(
      memory_tables.begin(), memory_tables.end(),
      [](const memory::MemoryTable& a, const memory::MemoryTable& b) {
        return a.total() < b.total();
      });
}

llvm::json::Value CompileReport::toJson() const {
  llvm::json::Object phases;
  for (const auto& [name, seconds] : phase_seconds) phases[name] = seconds;
  llvm::json::Array by_rank;
  if (memory_tables.size() > 1)
    for (const memory::MemoryTable& table : memory_tables)
      by_rank.push_back(driver::toJson(table));
  return llvm::json::Object{{"model", model},
                            {"operations", operations},
                            {"parameters", parameters},
                            {"parameter_elements", parameter_elements},
                            {"kernels", kernels},
                            {"launches", launches},
                            {"gemms", gemms},
                            {"convolutions", convolutions},
                            {"layer_kinds", layer_kinds},
                            {"layer_calls", layer_calls},
                            {"devices", devices},
                            {"collectives", collectives},
                            {"arena_bytes", arena_bytes},
                            {"derived_bytes", derived_bytes},
                            {"memory", driver::toJson(memoryTable())},
                            {"memory_by_rank", std::move(by_rank)},
                            {"recomputation", recomputation},
                            {"artifact_bytes", artifact_bytes},
                            {"phase_seconds", std::move(phases)},
                            {"seconds", seconds}};
}

}  // namespace partita::driver
