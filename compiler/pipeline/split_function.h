// A function as two, of which the first gives what is wanted early.
#ifndef PARTITA_COMPILER_PIPELINE_SPLIT_FUNCTION_H_
#define PARTITA_COMPILER_PIPELINE_SPLIT_FUNCTION_H_

#include "llvm/ADT/SmallVector.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::pipeline {

// When a result of the function is wanted.
enum class When { kNever, kEarly, kLate };

// first(arguments `first_arguments` of the whole) gives, among others, the
// `passed` of its results that the second is given after its own arguments:
// second(arguments `second_arguments`, passed).
struct SplitFunction {
  // Null where nothing is left for one of them: the other is the whole function
  // then, and nothing else is set.
  mlir::func::FuncOp first, second;
  llvm::SmallVector<unsigned> first_arguments, second_arguments;
  llvm::SmallVector<unsigned> passed;
  // Of each result of the whole that is wanted: which function gives it, and as
  // which result. A late one comes from the first where that saves memory.
  struct Source {
    bool is_second = false;
    unsigned result = 0;
  };
  llvm::SmallVector<Source> results;
};

// New private functions in no module, named as the whole with an ending.
// Products, convolutions, attention and the like are computed once, in the
// second if no early result needs them; the second may compute again what is
// elementwise, where that keeps fewer bytes between the two. Arguments that are
// `stored` count nothing: they are there anyway.
SplitFunction splitFunction(mlir::func::FuncOp whole,
                            llvm::ArrayRef<When> results,
                            llvm::ArrayRef<bool> stored);

}  // namespace partita::pipeline

#endif  // PARTITA_COMPILER_PIPELINE_SPLIT_FUNCTION_H_
