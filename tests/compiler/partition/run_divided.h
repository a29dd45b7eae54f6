// Runs partitioned modules through the interpreter.
#ifndef PARTITA_TESTS_COMPILER_PARTITION_RUN_DIVIDED_H_
#define PARTITA_TESTS_COMPILER_PARTITION_RUN_DIVIDED_H_

#include <vector>

#include "dialects/nn/tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "tests/compiler/simplify/evaluate.h"

namespace partita::partition {

// Runs the divided @main on all devices and assembles its results. Rows beyond
// the end of an argument are NaN. If it cannot run, returns an empty list with
// a test failure.
std::vector<nn::Tensor> runDivided(mlir::ModuleOp module,
                                   const simplify::Inputs& inputs);

// Expects the same types, no NaN, and equal numbers to 1e-5 of the largest
// value.
void expectEqual(const std::vector<nn::Tensor>& actual,
                 const std::vector<nn::Tensor>& expected);

}  // namespace partita::partition

#endif  // PARTITA_TESTS_COMPILER_PARTITION_RUN_DIVIDED_H_
