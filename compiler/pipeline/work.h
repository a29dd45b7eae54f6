// Estimates the work of operations.
#ifndef PARTITA_COMPILER_PIPELINE_WORK_H_
#define PARTITA_COMPILER_PIPELINE_WORK_H_

#include <cstdint>

#include "llvm/ADT/DenseMap.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::pipeline {

// Approximate number of multiplications and element accesses: the product of
// all factor sizes for a product or convolution, the number of elements read
// and written for other operations. A call counts the work of its function.
class Work {
 public:
  int64_t of(mlir::Operation* op);
  int64_t of(mlir::func::FuncOp function);  // of one run

 private:
  llvm::DenseMap<mlir::Operation*, int64_t> functions_;
};

}  // namespace partita::pipeline

#endif  // PARTITA_COMPILER_PIPELINE_WORK_H_
