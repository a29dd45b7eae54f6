// Runs modules through the interpreter, before and after passes, on made-up or
// recorded inputs.
#ifndef PARTITA_TESTS_COMPILER_SIMPLIFY_EVALUATE_H_
#define PARTITA_TESTS_COMPILER_SIMPLIFY_EVALUATE_H_

#include <functional>
#include <string>
#include <vector>

#include "dialects/nn/tensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"

namespace partita::simplify {

// A registry with the dialects of the tests and the references of all
// operations.
mlir::DialectRegistry testRegistry();

// Numbers that depend only on `seed` and the type. Floats are in [0.25, 1.25),
// so that roots and logarithms exist; integers are in {0, 1, 2}.
nn::Tensor madeUp(mlir::RankedTensorType type, uint64_t seed);

using Inputs = std::function<nn::Tensor(const std::string& name,
                                        mlir::RankedTensorType type)>;

// The value of @main's argument `i` as a tensor of `type`: its stored data,
// data made up from its name if no file has it, or an input.
nn::Tensor argumentOf(mlir::func::FuncOp main, unsigned i,
                      mlir::RankedTensorType type, const Inputs& inputs);

// The results of @main. Arguments with data come from their file, or are made
// up from their name. Derived ones come from @init, the others from `inputs`.
// If that is impossible, returns an empty list with a test failure.
std::vector<nn::Tensor> runMain(mlir::ModuleOp module, const Inputs& inputs);

// The results of a function on made-up arguments.
std::vector<nn::Tensor> runMadeUp(mlir::func::FuncOp function);

// Expects the same shapes, and the same numbers to a relative difference of
// 1e-4 (and absolute 1e-5).
void expectSame(const std::vector<nn::Tensor>& actual,
                const std::vector<nn::Tensor>& expected,
                const std::string& what);

}  // namespace partita::simplify

#endif  // PARTITA_TESTS_COMPILER_SIMPLIFY_EVALUATE_H_
