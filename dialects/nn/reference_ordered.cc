// References of products of ordered rows.
#include <algorithm>

#include "dialects/nn/ordered.h"
#include "dialects/nn/tensor.h"

namespace partita::nn {

using llvm::ArrayRef;
using llvm::SmallVector;
using mlir::FailureOr;

namespace {

// Calls `visit` with the index of a matrix and a row of its group. Ignores rows
// that do not exist.
template <typename Visit>
void forEachRow(const Tensor& order, int64_t matrices, int64_t rows,
                Visit visit) {
  for (int64_t i = 0; i < matrices; ++i) {
    const int64_t begin = std::max<int64_t>(order.getInt(i), 0),
                  end = std::min(order.getInt(i + 1), rows);
    for (int64_t at = begin; at < end; ++at) {
      const int64_t row = order.getInt(matrices + 2 + at);
      if (row >= 0 && row < rows) visit(i, row);
    }
  }
}

}  // namespace

FailureOr<SmallVector<Tensor>> OrderRowsOp::evaluate(
    ArrayRef<Tensor> operands) {
  const Tensor& ids = operands[0];
  const int64_t matrices = getMatrices(), rows = ids.shape()[0];
  Tensor order(getOrder().getType());
  int64_t position = 0;
  for (int64_t group = 0; group <= matrices; ++group) {
    order.setInt(group, position);
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t id = ids.getInt(row);
      const bool has_matrix = id >= 0 && id < matrices;
      if ((has_matrix ? id : matrices) == group)
        order.setInt(matrices + 2 + position++, row);
    }
  }
  order.setInt(matrices + 1, rows);
  return SmallVector<Tensor>{order};
}

FailureOr<SmallVector<Tensor>> OrderedDotOp::evaluate(
    ArrayRef<Tensor> operands) {
  const Tensor &x = operands[0], &order = operands[1], &w = operands[2];
  const int64_t width = x.shape()[1], out = getType().getDimSize(1);
  Tensor result(getType());
  for (int64_t i = 0; i < result.size(); ++i) result.setFloat(i, 0);
  forEachRow(order, w.shape()[0], x.shape()[0], [&](int64_t id, int64_t row) {
    for (int64_t i = 0; i < out; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < width; ++j)
        sum += x.getFloat(x.position({row, j})) *
               w.getFloat(getTransposed() ? w.position({id, j, i})
                                          : w.position({id, i, j}));
      result.setFloat(row * out + i, sum);
    }
  });
  return SmallVector<Tensor>{result};
}

FailureOr<SmallVector<Tensor>> OrderedDotWeightGradOp::evaluate(
    ArrayRef<Tensor> operands) {
  const Tensor &x = operands[0], &order = operands[1], &g = operands[2];
  const int64_t width = x.shape()[1], out = g.shape()[1];
  std::vector<double> sums(getType().getNumElements());
  forEachRow(order, getType().getDimSize(0), x.shape()[0],
             [&](int64_t id, int64_t row) {
               for (int64_t i = 0; i < out; ++i)
                 for (int64_t j = 0; j < width; ++j)
                   sums[(id * out + i) * width + j] +=
                       g.getFloat(row * out + i) * x.getFloat(row * width + j);
             });
  Tensor result(getType());
  for (int64_t i = 0; i < result.size(); ++i) result.setFloat(i, sums[i]);
  return SmallVector<Tensor>{result};
}

}  // namespace partita::nn
