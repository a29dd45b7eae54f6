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

// With the references of all operations; without threads.
mlir::DialectRegistry testRegistry();

// Numbers that depend on `seed` and the type alone: floats in [0.25, 1.25), so
// that roots and logarithms exist, and integers in {0, 1, 2}.
nn::Tensor madeUp(mlir::RankedTensorType type, uint64_t seed);

using Inputs = std::function<nn::Tensor(const std::string& name,
                                        mlir::RankedTensorType type)>;

// What @main's argument `i` is, as a tensor of `type`: its data, made up by
// name where no file has it, or an input.
nn::Tensor argumentOf(mlir::func::FuncOp main, unsigned i,
                      mlir::RankedTensorType type, const Inputs& inputs);

// The results of @main. Arguments with data come from their file, or are made
// up by name; derived ones come from
// @init; the others come from `inputs`. Empty, with a failure of the test,
// where that is impossible.
std::vector<nn::Tensor> runMain(mlir::ModuleOp module, const Inputs& inputs);

// The results of a function on made-up arguments.
std::vector<nn::Tensor> runMadeUp(mlir::func::FuncOp function);

// Expects the same shapes and, to a relative difference of 1e-4 (and 1e-5), the
// same numbers.
void expectSame(const std::vector<nn::Tensor>& actual,
                const std::vector<nn::Tensor>& expected,
                const std::string& what);

}  // namespace partita::simplify

#endif  // PARTITA_TESTS_COMPILER_SIMPLIFY_EVALUATE_H_
