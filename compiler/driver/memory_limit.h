// A program's memory per device: compared with the plan's limit, and in the
// forms that programs and people read.
#ifndef PARTITA_COMPILER_DRIVER_MEMORY_LIMIT_H_
#define PARTITA_COMPILER_DRIVER_MEMORY_LIMIT_H_

#include <cstdint>
#include <string>

#include "compiler/driver/train_options.h"
#include "compiler/memory/memory_table.h"
#include "compiler/plan/plan.h"
#include "llvm/Support/JSON.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LLVM.h"
#include "runtime/program/artifact.h"

namespace partita::driver {

// Bytes that a device may take, and who says so.
struct MemoryLimit {
  int64_t bytes;
  std::string where;  // "plan.yaml:3:9: memory"
};

// Refuses a program that takes more, saying what takes the most and what would
// take less; `plan` may be null, and `train` where it does not train.
mlir::LogicalResult checkMemory(mlir::ModuleOp module,
                                const memory::MemoryTable& table,
                                const MemoryLimit& limit,
                                const plan::Plan* plan,
                                const TrainOptions* train);

// Whether what the optimizer keeps lies on the host; `plan` may be null.
bool statesOnHost(const plan::Plan* plan);

// As the program of an artifact has it.
program::MemoryTableT toProgram(const memory::MemoryTable& table);
// By class, and "total", "gaps", "most_gradients" and "host".
llvm::json::Object toJson(const memory::MemoryTable& table);
// "parameters 1 GB, optimizer states 2 GB, ...", those there are.
std::string toText(const memory::MemoryTable& table);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_MEMORY_LIMIT_H_
