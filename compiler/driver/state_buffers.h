// Counts and checks the buffers of optimizer states that are in files.
#ifndef PARTITA_COMPILER_DRIVER_STATE_BUFFERS_H_
#define PARTITA_COMPILER_DRIVER_STATE_BUFFERS_H_

#include <cstdint>

#include "compiler/memory/memory_table.h"
#include "compiler/plan/plan.h"
#include "dialects/exec/entries.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::driver {

// Moves the updated states of an entry, whose memory is planned, from
// `table.host` to `table.files`, and adds their buffers to `table.host`, as the
// runtime makes them (program::PlanStateWindows). `buffers` is the upper bound
// of the plan; 0: none.
void countStateFiles(const exec::Entry& entry, int64_t buffers,
                     memory::MemoryTable& table);

// Fails, with a diagnostic, if the plan's `offload: buffers` are too small for
// an entry of the module, whose memory is planned.
mlir::LogicalResult checkStateBuffers(mlir::ModuleOp module,
                                      const plan::Plan& plan);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_STATE_BUFFERS_H_
