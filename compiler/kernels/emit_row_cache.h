// Keeps in scratch the values that a reduction computes and that later loops
// over the same elements need again.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_ROW_CACHE_H_
#define PARTITA_COMPILER_KERNELS_EMIT_ROW_CACHE_H_

#include "compiler/kernels/emit_reduction.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace partita::kernels {

// Example: the exponentials of a softmax are summed, and then each is divided
// by the sum. The loop that sums stores them; the loop that divides loads them.
class RowCache {
 public:
  // `index` is that of the reduction's input, with 0 for the reduced
  // dimensions.
  RowCache(Emitter& emitter, nn::ReduceOp op, llvm::ArrayRef<Index> index,
           const ReductionLoops& reduction);

  // In the loop: the reduction's input has been computed at `element`, which is
  // `at` in the reduced dimensions. Stores the values that later loops need.
  mlir::LogicalResult storeForReuse(llvm::ArrayRef<Index> element,
                                    llvm::ArrayRef<Index> at);
  // After the loop: from now on the emitter loads the elements from scratch.
  void publish();

 private:
  void chooseValues();
  // Adds `value` and the values of elementwise operations computed for it.
  void collectComputed(mlir::Value value,
                       llvm::SetVector<mlir::Value>& computed) const;
  // Operations and loads that computing an element again would take.
  int costOf(mlir::Value value) const;
  bool isStored(mlir::Value value) const {
    return buffers_.contains(value) || emitter_.isCached(value);
  }

  Emitter& emitter_;
  nn::ReduceOp op_;
  IndexVector index_;
  const ReductionLoops& reduction_;
  int64_t width_;                 // elements stored at a time
  const Symbol* lane_ = nullptr;  // runs over the lanes of the result
  llvm::MapVector<mlir::Value, Buffer> buffers_;
};

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_ROW_CACHE_H_
