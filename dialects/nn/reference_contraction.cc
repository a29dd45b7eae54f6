// Reference implementations of contraction and reduction. Sums are in double
// and rounded once to the element type.
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "dialects/nn/dialect.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::nn {
namespace {

using mlir::ArrayRef;
using mlir::FailureOr;
using mlir::SmallVector;

FailureOr<SmallVector<Tensor>> one(Tensor result) {
  return SmallVector<Tensor>{std::move(result)};
}

// The positions of all elements along `dims`, the last varying fastest, with
// index 0 in the other dimensions.
std::vector<int64_t> positionsAlong(ArrayRef<int64_t> shape,
                                    ArrayRef<int64_t> dims) {
  std::vector<int64_t> positions = {0};
  for (int64_t dim : dims) {
    int64_t stride = 1;
    for (int64_t size : shape.drop_front(dim + 1)) stride *= size;
    std::vector<int64_t> longer;
    for (int64_t position : positions) {
      for (int64_t i = 0; i < shape[dim]; ++i)
        longer.push_back(position + i * stride);
    }
    positions = std::move(longer);
  }
  return positions;
}

std::vector<SmallVector<int64_t>> allIndices(ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t size : shape) count *= size;
  std::vector<SmallVector<int64_t>> indices;
  for (int64_t i = 0; i < count; ++i) indices.push_back(indexAt(shape, i));
  return indices;
}

SmallVector<int64_t> otherDims(int64_t rank, ArrayRef<int64_t> dims,
                               ArrayRef<int64_t> more = {}) {
  SmallVector<int64_t> others;
  for (int64_t dim = 0; dim < rank; ++dim) {
    if (!llvm::is_contained(dims, dim) && !llvm::is_contained(more, dim))
      others.push_back(dim);
  }
  return others;
}

// Combines elements one by one, starting from the neutral element of the kind.
class Accumulator {
 public:
  Accumulator(ReduceKind kind, mlir::Type element) : kind_(kind) {
    const bool is_bool = element.isInteger(1);
    const unsigned width =
        element.isInteger() ? element.getIntOrFloatBitWidth() : 64;
    switch (kind) {
      case ReduceKind::sum:
        break;
      case ReduceKind::prod:
        float_ = int_ = 1;
        break;
      case ReduceKind::max:
        float_ = -std::numeric_limits<double>::infinity();
        int_ = is_bool ? 0 : llvm::minIntN(width);
        break;
      case ReduceKind::min:
        float_ = std::numeric_limits<double>::infinity();
        int_ = is_bool ? 1 : llvm::maxIntN(width);
        break;
    }
  }

  void add(const Tensor& tensor, int64_t position) {
    if (tensor.isFloat()) {
      addFloat(tensor.getFloat(position));
    } else {
      addInt(tensor.getInt(position));
    }
  }

  void store(Tensor& tensor, int64_t position) const {
    if (tensor.isFloat()) {
      tensor.setFloat(position, float_);
    } else {
      tensor.setInt(position, int_);
    }
  }

 private:
  void addFloat(double value) {
    if (kind_ == ReduceKind::sum) float_ += value;
    if (kind_ == ReduceKind::prod) float_ *= value;
    // Written so that a NaN persists.
    if (kind_ == ReduceKind::max && !(value <= float_) && !std::isnan(float_))
      float_ = value;
    if (kind_ == ReduceKind::min && !(value >= float_) && !std::isnan(float_))
      float_ = value;
  }

  void addInt(int64_t value) {
    if (kind_ == ReduceKind::sum)
      int_ = static_cast<uint64_t>(int_) + static_cast<uint64_t>(value);
    if (kind_ == ReduceKind::prod)
      int_ = static_cast<uint64_t>(int_) * static_cast<uint64_t>(value);
    if (kind_ == ReduceKind::max) int_ = std::max(int_, value);
    if (kind_ == ReduceKind::min) int_ = std::min(int_, value);
  }

  ReduceKind kind_;
  double float_ = 0;
  int64_t int_ = 0;
};

}  // namespace

FailureOr<SmallVector<Tensor>> DotGeneralOp::evaluate(
    ArrayRef<Tensor> operands) {
  const Tensor &lhs = operands[0], &rhs = operands[1];
  const auto lhs_batch = positionsAlong(lhs.shape(), getLhsBatch());
  const auto rhs_batch = positionsAlong(rhs.shape(), getRhsBatch());
  const auto lhs_free = positionsAlong(
      lhs.shape(), otherDims(lhs.rank(), getLhsBatch(), getLhsContract()));
  const auto rhs_free = positionsAlong(
      rhs.shape(), otherDims(rhs.rank(), getRhsBatch(), getRhsContract()));
  const auto lhs_contract = positionsAlong(lhs.shape(), getLhsContract());
  const auto rhs_contract = positionsAlong(rhs.shape(), getRhsContract());
  Tensor result(getType());
  int64_t at = 0;
  for (size_t batch = 0; batch < lhs_batch.size(); ++batch) {
    for (int64_t row : lhs_free) {
      for (int64_t column : rhs_free) {
        const int64_t left = lhs_batch[batch] + row,
                      right = rhs_batch[batch] + column;
        double float_sum = 0;
        uint64_t int_sum = 0;
        for (size_t i = 0; i < lhs_contract.size(); ++i) {
          if (lhs.isFloat()) {
            float_sum += lhs.getFloat(left + lhs_contract[i]) *
                         rhs.getFloat(right + rhs_contract[i]);
          } else {
            int_sum +=
                static_cast<uint64_t>(lhs.getInt(left + lhs_contract[i])) *
                static_cast<uint64_t>(rhs.getInt(right + rhs_contract[i]));
          }
        }
        if (result.isFloat()) {
          result.setFloat(at++, float_sum);
        } else {
          result.setInt(at++, int_sum);
        }
      }
    }
  }
  return one(std::move(result));
}

FailureOr<SmallVector<Tensor>> ReduceOp::evaluate(ArrayRef<Tensor> operands) {
  const Tensor& input = operands[0];
  Tensor result(getType());
  const auto kept =
      positionsAlong(input.shape(), otherDims(input.rank(), getDims()));
  const auto reduced = positionsAlong(input.shape(), getDims());
  for (size_t i = 0; i < kept.size(); ++i) {
    Accumulator accumulator(getKind(), input.type().getElementType());
    for (int64_t position : reduced) accumulator.add(input, kept[i] + position);
    accumulator.store(result, i);
  }
  return one(std::move(result));
}

FailureOr<SmallVector<Tensor>> ReduceWindowOp::evaluate(
    ArrayRef<Tensor> operands) {
  const Tensor& input = operands[0];
  Tensor result(getType());
  const auto window = allIndices(getWindow());
  for (int64_t i = 0; i < result.size(); ++i) {
    Accumulator accumulator(getKind(), input.type().getElementType());
    const SmallVector<int64_t> out = result.index(i);
    for (SmallVector<int64_t> at : window) {
      bool inside = true;
      for (int64_t dim = 0; dim < input.rank(); ++dim) {
        at[dim] = out[dim] * getStrides()[dim] + at[dim] * getDilations()[dim] -
                  getLow()[dim];
        inside &= at[dim] >= 0 && at[dim] < input.shape()[dim];
      }
      if (inside) accumulator.add(input, input.position(at));
    }
    accumulator.store(result, i);
  }
  return one(std::move(result));
}

// True if `value` is more extreme than `extreme`, as a maximum or minimum.
static bool isMoreExtreme(ReduceKind kind, double value, double extreme) {
  if (std::isnan(extreme)) return false;
  if (std::isnan(value)) return true;
  return kind == ReduceKind::max ? value > extreme : value < extreme;
}

FailureOr<SmallVector<Tensor>> ReduceWindowGradOp::evaluate(
    ArrayRef<Tensor> operands) {
  const Tensor& result_grad = operands[0];
  Tensor result(getType());
  std::vector<double> sums(result.size());
  const auto window = allIndices(getWindow());
  for (int64_t i = 0; i < result_grad.size(); ++i) {
    const SmallVector<int64_t> out = result_grad.index(i);
    int64_t extreme = -1;
    for (SmallVector<int64_t> at : window) {
      bool inside = true;
      for (int64_t dim = 0; dim < result.rank(); ++dim) {
        at[dim] = out[dim] * getStrides()[dim] + at[dim] * getDilations()[dim] -
                  getLow()[dim];
        inside &= at[dim] >= 0 && at[dim] < result.shape()[dim];
      }
      if (!inside) continue;
      const int64_t position = result.position(at);
      if (getKind() == ReduceKind::sum) {
        sums[position] += result_grad.getFloat(i);
      } else if (extreme < 0 ||
                 isMoreExtreme(getKind(), operands[1].getFloat(position),
                               operands[1].getFloat(extreme))) {
        extreme = position;
      }
    }
    if (extreme >= 0) sums[extreme] += result_grad.getFloat(i);
  }
  for (int64_t i = 0; i < result.size(); ++i) result.setFloat(i, sums[i]);
  return one(std::move(result));
}

}  // namespace partita::nn
