// How much there is to compute.
#ifndef PARTITA_COMPILER_PIPELINE_WORK_H_
#define PARTITA_COMPILER_PIPELINE_WORK_H_

#include <cstdint>

#include "llvm/ADT/DenseMap.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::pipeline {

// About how many multiplications and element accesses operations take: the
// sizes of all factors of a product or convolution, the elements of anything
// else. A call takes what its function does.
class Work {
 public:
  int64_t of(mlir::Operation* op);
  int64_t of(mlir::func::FuncOp function);  // of one run

 private:
  llvm::DenseMap<mlir::Operation*, int64_t> functions_;
};

}  // namespace partita::pipeline

#endif  // PARTITA_COMPILER_PIPELINE_WORK_H_
