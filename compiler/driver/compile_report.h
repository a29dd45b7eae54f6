// What compiling a model did, counted.
#ifndef PARTITA_COMPILER_DRIVER_COMPILE_REPORT_H_
#define PARTITA_COMPILER_DRIVER_COMPILE_REPORT_H_

#include <string>
#include <utility>
#include <vector>

#include "compiler/memory/memory_table.h"
#include "llvm/Support/JSON.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::driver {

// What compiling did; sizes in bytes, times in seconds.
struct CompileReport {
  std::string model;
  int64_t parameters = 0, parameter_elements = 0;
  int64_t operations =
      0;  // of the imported model, layer functions counted once
  int64_t kernels = 0, launches = 0, gemms = 0, convolutions = 0,
          layer_kinds = 0, layer_calls = 0, devices = 1, collectives = 0;
  int64_t arena_bytes = 0, derived_bytes = 0, artifact_bytes = 0;
  // Of a device; of a pipeline by rank.
  std::vector<memory::MemoryTable> memory_tables;
  std::string recomputation;  // what `recompute: budget` chose
  std::vector<std::pair<std::string, double>> phase_seconds;
  double seconds = 0;

  // What the model is, as imported: `model`, `operations`, `parameters`.
  void countModel(mlir::ModuleOp module);
  // What a program of exec is: its kernels, calls, collectives.
  void countProgram(mlir::ModuleOp module);
  // Of the entries of a program whose memory is planned the largest arena and
  // the largest derived values.
  void measureEntries(mlir::ModuleOp module);

  // Of the device that takes most; there must be one.
  const memory::MemoryTable& memoryTable() const;
  llvm::json::Value toJson() const;
};

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_COMPILE_REPORT_H_
