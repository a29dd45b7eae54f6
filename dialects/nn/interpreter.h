// Runs a function of a module on plain numbers with the reference of every
// operation. It is the oracle for compiled code.
#ifndef PARTITA_DIALECTS_NN_INTERPRETER_H_
#define PARTITA_DIALECTS_NN_INTERPRETER_H_

#include "dialects/nn/tensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::nn {

// Returns the results of `function` for these arguments, one tensor of matching
// type per argument of the function. Calls (func.call) are followed within the
// function's module. Functions must have one block with only nn, arith and math
// operations on static tensors, calls and a return. Any other operation is an
// error at that operation, and so is one with an undefined result.
mlir::FailureOr<llvm::SmallVector<Tensor>> interpret(
    mlir::func::FuncOp function, llvm::ArrayRef<Tensor> arguments);

}  // namespace partita::nn

#endif  // PARTITA_DIALECTS_NN_INTERPRETER_H_
