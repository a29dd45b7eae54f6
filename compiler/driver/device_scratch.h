// Memory of a GPU that operations have while they run.
#ifndef PARTITA_COMPILER_DRIVER_DEVICE_SCRATCH_H_
#define PARTITA_COMPILER_DRIVER_DEVICE_SCRATCH_H_

#include <cstdint>
#include <vector>

#include "mlir/IR/BuiltinOps.h"

namespace partita::driver {

// In bytes, of a module of the exec dialect whose code was generated: the most
// that any launch or library operation takes, as they share it. Without what
// the libraries themselves hold, NCCL's buffers among it.
int64_t deviceScratch(mlir::ModuleOp module);

// In bytes, of each entry: the slots to which it copies what it sends to
// others.
std::vector<int64_t> transferSlots(mlir::ModuleOp module);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_DEVICE_SCRATCH_H_
