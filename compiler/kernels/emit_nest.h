// Loops over the elements of kernel results.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_NEST_H_
#define PARTITA_COMPILER_KERNELS_EMIT_NEST_H_

#include "compiler/kernels/emit_elements.h"

namespace partita::kernels {

// A value and where its elements go: one after the other, or, if it is a part
// of what the buffer holds, every `row` of them to begin, begin + stride, ....
struct Output {
  mlir::Value value;
  Buffer buffer;
  int64_t row = 0;  // 0: all are one row
  int64_t stride = 0;
  int64_t begin = 0;
};

// The loops over one result shape. Dimensions, whose sizes multiply to the
// number of elements, are those that accesses tell apart, so a plain
// elementwise kernel has one.
struct NestPlan {
  struct Dimension {
    int64_t size = 1;
    bool parallel =
        true;  // part of the kernel's range; otherwise a loop of its own inside
  };
  llvm::SmallVector<Dimension> dims;  // outermost first
  int64_t lanes = 0;  // of the last dimension; 0: none, one element at a time
  int64_t chunk = 0;  // elements of the last dimension in one item of the
                      // range, if it has lanes
  bool lanes_outside = false;  // the loop over lanes encloses the other loops
                               // that are not parallel

  int64_t chunks() const {
    return lanes == 0 ? 1 : (dims.back().size + chunk - 1) / chunk;
  }
  int64_t range() const;
};

// Chooses loops for outputs of one shape, after emitting them once on trial.
mlir::FailureOr<NestPlan> planNest(Emitter& emitter,
                                   llvm::ArrayRef<Output> outputs);
// Emits the items begin .. end-1 of the plan's range.
mlir::LogicalResult emitNest(Emitter& emitter, llvm::ArrayRef<Output> outputs,
                             const NestPlan& plan, mlir::Value begin,
                             mlir::Value end);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_NEST_H_
