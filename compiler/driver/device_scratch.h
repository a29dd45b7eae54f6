// GPU memory beyond a program's own memory table: scratch of running
// operations, tensors in transfer, buffers of collectives, and the inputs of
// the next step.
#ifndef PARTITA_COMPILER_DRIVER_DEVICE_SCRATCH_H_
#define PARTITA_COMPILER_DRIVER_DEVICE_SCRATCH_H_

#include <cstdint>
#include <vector>

#include "mlir/IR/BuiltinOps.h"

namespace partita::driver {

// Scratch bytes of a module of the exec dialect whose code was generated: the
// maximum over all launches and library operations, which share it.
int64_t deviceScratch(mlir::ModuleOp module);

// Bytes per entry of the slots that hold sent tensors until they are received.
std::vector<int64_t> transferSlots(mlir::ModuleOp module);

// Bytes per entry of what collectives and transfers need beside their tensors:
// NCCL's buffers of each group of devices, an estimate, and the scratch in
// which parts of tensors are packed.
std::vector<int64_t> exchangeBuffers(mlir::ModuleOp module);

// Bytes per entry of the next step's inputs, which are uploaded while this step
// runs. Zero unless the module is a training step.
std::vector<int64_t> nextInputs(mlir::ModuleOp module);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_DEVICE_SCRATCH_H_
