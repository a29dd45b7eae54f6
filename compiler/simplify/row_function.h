// Evaluates index arithmetic: values of which row r is a function of row r of
// one other value.
#ifndef PARTITA_COMPILER_SIMPLIFY_ROW_FUNCTION_H_
#define PARTITA_COMPILER_SIMPLIFY_ROW_FUNCTION_H_

#include <optional>

#include "dialects/nn/tensor.h"
#include "mlir/IR/Value.h"

namespace partita::simplify {

// True if every row (index of dimension 0) of a constant is the same.
bool hasEqualRows(mlir::DenseElementsAttr constant);

// Returns the rows that `value` [n, ...] has if `leaf` [n] has the elements 0,
// 1, ..., count - 1 instead of its own n elements. Nothing if a row of `value`
// depends on more than the same row of `leaf`, or on another value than a
// constant.
std::optional<nn::Tensor> evaluateRows(mlir::Value value, mlir::Value leaf,
                                       int64_t count);

}  // namespace partita::simplify

#endif  // PARTITA_COMPILER_SIMPLIFY_ROW_FUNCTION_H_
