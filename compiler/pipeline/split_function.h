// Splits a function in two; the first half computes the early results.
#ifndef PARTITA_COMPILER_PIPELINE_SPLIT_FUNCTION_H_
#define PARTITA_COMPILER_PIPELINE_SPLIT_FUNCTION_H_

#include "llvm/ADT/SmallVector.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::pipeline {

// When a result of the function is needed.
enum class When { kNever, kEarly, kLate };

// first(arguments `first_arguments`) returns, among others, the results
// `passed`. second(arguments `second_arguments`, passed) takes them after its
// own arguments.
struct SplitFunction {
  // One is null if the function is not split: the other is then the whole
  // function, and the remaining fields are empty.
  mlir::func::FuncOp first, second;
  llvm::SmallVector<unsigned> first_arguments, second_arguments;
  llvm::SmallVector<unsigned> passed;
  // The function and result index that provide each needed result. A late
  // result comes from `first` if that saves memory.
  struct Source {
    bool is_second = false;
    unsigned result = 0;
  };
  llvm::SmallVector<Source> results;
};

// Makes private functions outside of any module, named like `whole` with a
// suffix. Products, convolutions, attention and other heavy operations run
// once: in `second` unless an early result needs them. `second` recomputes
// elementwise operations if this passes fewer bytes. Arguments that are
// `stored` cost nothing, because they exist in any case.
SplitFunction splitFunction(mlir::func::FuncOp whole,
                            llvm::ArrayRef<When> results,
                            llvm::ArrayRef<bool> stored);

}  // namespace partita::pipeline

#endif  // PARTITA_COMPILER_PIPELINE_SPLIT_FUNCTION_H_
