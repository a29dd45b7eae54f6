// Statistics of one compilation.
#ifndef PARTITA_COMPILER_DRIVER_COMPILE_REPORT_H_
#define PARTITA_COMPILER_DRIVER_COMPILE_REPORT_H_

#include <string>
#include <utility>
#include <vector>

#include "compiler/memory/memory_table.h"
#include "llvm/Support/JSON.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::driver {

// Sizes are in bytes, times in seconds.
struct CompileReport {
  std::string model;
  int64_t parameters = 0, parameter_elements = 0;
  int64_t operations =
      0;  // of the imported model, layer functions counted once
  int64_t kernels = 0, launches = 0, gemms = 0, convolutions = 0,
          layer_kinds = 0, layer_calls = 0, devices = 1, collectives = 0;
  int64_t arena_bytes = 0, derived_bytes = 0, artifact_bytes = 0;
  // One table, or one per rank of a pipeline.
  std::vector<memory::MemoryTable> memory_tables;
  std::string recomputation;  // what `recompute: budget` chose
  std::vector<std::pair<std::string, double>> phase_seconds;
  double seconds = 0;

  // Counts the imported model: `model`, `operations`, `parameters`.
  void countModel(mlir::ModuleOp module);
  // Counts an exec program: its kernels, calls, collectives.
  void countProgram(mlir::ModuleOp module);
  // Sets the largest arena and the largest derived values among the entries of
  // a program whose memory is planned.
  void measureEntries(mlir::ModuleOp module);

  // The table of the device with the most memory. Requires at least one table.
  const memory::MemoryTable& memoryTable() const;
  llvm::json::Value toJson() const;
};

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_COMPILE_REPORT_H_
