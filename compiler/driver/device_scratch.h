// Memory of a GPU beside what a program's own tables say: what operations have
// while they run, what is on its way to others or to the next step.
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

// In bytes, of each entry of a training step, else zero: the data of the next
// step, which is uploaded while this one runs.
std::vector<int64_t> nextInputs(mlir::ModuleOp module);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_DEVICE_SCRATCH_H_
