// Runs partitioned modules on plain numbers.
#ifndef PARTITA_TESTS_COMPILER_PARTITION_RUN_DIVIDED_H_
#define PARTITA_TESTS_COMPILER_PARTITION_RUN_DIVIDED_H_

#include <vector>

#include "dialects/nn/tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "tests/compiler/simplify/evaluate.h"

namespace partita::partition {

// All results of the divided @main on all devices, put together. Rows beyond
// the end of an argument hold NaN. Empty, with a failure of the test, where it
// cannot be run.
std::vector<nn::Tensor> runDivided(mlir::ModuleOp module,
                                   const simplify::Inputs& inputs);

// Expects the same types and, to 1e-5 of the largest value, the same numbers;
// no NaN.
void expectEqual(const std::vector<nn::Tensor>& actual,
                 const std::vector<nn::Tensor>& expected);

}  // namespace partita::partition

#endif  // PARTITA_TESTS_COMPILER_PARTITION_RUN_DIVIDED_H_
