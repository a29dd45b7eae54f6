// The code generator's view of an operation, and how fusion may group it.
#ifndef PARTITA_COMPILER_KERNELS_KERNEL_OP_INTERFACE_H_
#define PARTITA_COMPILER_KERNELS_KERNEL_OP_INTERFACE_H_

#include "compiler/kernels/emit_index.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/OpDefinition.h"

namespace partita::kernels {

class Emitter;

// Elements of a tensor as generated code holds them: a scalar that all lanes
// share, or a vector of `lanes` elements. 16-bit and smaller floats are held as
// f32, all other types as they are.
struct Lanes {
  mlir::Value value;
  int64_t lanes = 0;  // 0: a scalar
};

// How an operation may be grouped with others into one kernel.
enum class KernelRole {
  elementwise,  // element i of the result needs element i of the operands: fuse
                // with anything
  movement,   // only moves elements (broadcast, reshape, transpose, slice, pad,
              // gather, ...): fuse into consumers
  reduction,  // its result has fewer elements than it reads: producers fuse in,
              // same-shape consumers follow
  row,        // reduces and then broadcasts along the same dimensions (softmax,
              // layer_norm, ...): fuse both ways
  attention,  // producers that only move or scale elements fuse in, reshapes
              // and transposes of the result follow
  single,     // a kernel of its own
  unsupported,  // no code can be generated
};

KernelRole kernelRole(mlir::Operation* op);

}  // namespace partita::kernels

#include "compiler/kernels/kernel_op_interface.h.inc"

namespace partita::kernels {

// Attaches KernelOpInterface to the operations of arith, math and nn, and adds
// the operations that only kernels have (dialects/nn/ordered.h). Call it on the
// registry of any context that generates kernels.
void registerKernelModels(mlir::DialectRegistry& registry);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_KERNEL_OP_INTERFACE_H_
