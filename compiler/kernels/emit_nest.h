// Loops over the elements of kernel results.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_NEST_H_
#define PARTITA_COMPILER_KERNELS_EMIT_NEST_H_

#include "compiler/kernels/emit_elements.h"

namespace partita::kernels {

// A value and the place of its elements. They are consecutive in the buffer,
// or, if the value is a part of the buffer's tensor, rows of `row` elements at
// begin, begin + stride, ....
struct Output {
  mlir::Value value;
  Buffer buffer;
  int64_t row = 0;  // 0: all are one row
  int64_t stride = 0;
  int64_t begin = 0;
  // Of gradients of attention that are parts of the buffer's tensor: strides of
  // the value's dimensions. Empty: the value is the buffer's tensor.
  llvm::SmallVector<int64_t> strides = {};
};

// The loops over one result shape. Dimensions that no access distinguishes are
// merged, so that a plain elementwise kernel has one. The sizes of all
// dimensions multiply to the number of elements.
struct NestPlan {
  struct Dimension {
    int64_t size = 1;
    // True: part of the kernel's range; false: an inner loop.
    bool parallel = true;
  };
  llvm::SmallVector<Dimension> dims;  // outermost first
  // Lanes of the last dimension; 0: one element at a time.
  int64_t lanes = 0;
  // With lanes: elements of the last dimension in one item of the range.
  int64_t chunk = 0;
  // The loop over lanes encloses the loops that are not parallel.
  bool lanes_outside = false;

  int64_t chunks() const {
    return lanes == 0 ? 1 : (dims.back().size + chunk - 1) / chunk;
  }
  int64_t range() const;
};

// Chooses loops for outputs of one shape, after a trial that emits them once.
mlir::FailureOr<NestPlan> planNest(Emitter& emitter,
                                   llvm::ArrayRef<Output> outputs);
// Emits the items begin .. end-1 of the plan's range.
mlir::LogicalResult emitNest(Emitter& emitter, llvm::ArrayRef<Output> outputs,
                             const NestPlan& plan, mlir::Value begin,
                             mlir::Value end);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_NEST_H_
