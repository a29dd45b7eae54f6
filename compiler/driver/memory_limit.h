// A program's memory per device: checked against the plan's limit, and in the
// forms that programs and people read.
#ifndef PARTITA_COMPILER_DRIVER_MEMORY_LIMIT_H_
#define PARTITA_COMPILER_DRIVER_MEMORY_LIMIT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "compiler/driver/train_options.h"
#include "compiler/memory/memory_table.h"
#include "compiler/plan/plan.h"
#include "llvm/Support/JSON.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LLVM.h"
#include "runtime/program/artifact.h"

namespace partita::driver {

// A memory limit per device, and where it was given.
struct MemoryLimit {
  int64_t bytes;
  std::string where;  // "plan.yaml:3:9: memory"
};

// The limit that the plan or the option --memory gives, if any. `plan` may be
// null.
std::optional<MemoryLimit> findLimit(const plan::Plan* plan,
                                     std::optional<int64_t> option);

// Refuses a program over the limit. Reports its largest parts and ways to need
// less. `plan` may be null; `train` is null for inference.
mlir::LogicalResult checkMemory(mlir::ModuleOp module,
                                const memory::MemoryTable& table,
                                const MemoryLimit& limit,
                                const plan::Plan* plan,
                                const TrainOptions* train);

// True if optimizer states are kept on the host; `plan` may be null.
bool statesOnHost(const plan::Plan* plan);

// The table in the artifact's format.
program::MemoryTableT toProgram(const memory::MemoryTable& table);
// One entry per class, and "total", "gaps", "most_gradients" and "host".
llvm::json::Object toJson(const memory::MemoryTable& table);
// "parameters 1 GB, optimizer states 2 GB, ...", without empty classes.
std::string toText(const memory::MemoryTable& table);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_MEMORY_LIMIT_H_
