// Runs a function of a module on plain numbers, through the reference of every
// operation: the oracle of compiled code.
#ifndef PARTITA_DIALECTS_NN_INTERPRETER_H_
#define PARTITA_DIALECTS_NN_INTERPRETER_H_

#include "dialects/nn/tensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::nn {

// The values that `function` returns for these arguments, one per argument of
// its type. Calls (func.call) are followed in the function's module. Functions
// have one block, of nn, arith and math operations on static tensors, calls and
// the return; anything else, and an operation without meaning for its operands,
// is an error at that operation.
mlir::FailureOr<llvm::SmallVector<Tensor>> interpret(
    mlir::func::FuncOp function, llvm::ArrayRef<Tensor> arguments);

}  // namespace partita::nn

#endif  // PARTITA_DIALECTS_NN_INTERPRETER_H_
