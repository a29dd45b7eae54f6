// Reference implementations of convolution and its two gradients: one walk over
// all products, three ways to sum them. Sums are in double and rounded once to
// the element type.
#include <array>
#include <vector>

#include "dialects/nn/dialect.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::nn {
namespace {

using mlir::ArrayRef;
using mlir::FailureOr;
using mlir::SmallVector;

// A convolution's tensor as [batch or filter, channel, depth, height, width],
// for any layout and rank.
struct View {
  std::array<int64_t, 5> size = {1, 1, 1, 1, 1};
  std::array<int64_t, 5> stride = {0, 0, 0, 0, 0};

  View(ArrayRef<int64_t> shape, bool channels_last) {
    const int64_t rank = shape.size();
    for (int64_t dim = rank - 1, step = 1; dim >= 0; step *= shape[dim--]) {
      int64_t place = dim + 5 - rank;  // spatial dimensions come last
      if (dim == 0) place = 0;
      if (channels_last && dim > 0) place = dim == rank - 1 ? 1 : place + 1;
      if (!channels_last && dim == 1) place = 1;
      size[place] = shape[dim];
      stride[place] = step;
    }
  }

  int64_t position(const std::array<int64_t, 5>& index) const {
    int64_t result = 0;
    for (int i = 0; i < 5; ++i) result += index[i] * stride[i];
    return result;
  }
};

// Extends `values`, one per spatial dimension, to three dimensions.
std::array<int64_t, 3> toThree(ArrayRef<int64_t> values, int64_t fill) {
  std::array<int64_t, 3> result = {fill, fill, fill};
  llvm::copy(values, result.end() - values.size());
  return result;
}

// Calls `visit` for every product, with the positions in input, weight and
// result of its factors and of its sum. The products of one sum are
// consecutive.
template <typename Op, typename Visit>
void forEachProduct(Op op, ArrayRef<int64_t> input, ArrayRef<int64_t> weight,
                    ArrayRef<int64_t> result, Visit visit) {
  const View in(input, op.getChannelsLast()), out(result, op.getChannelsLast()),
      w(weight, false);
  const auto strides = toThree(op.getStrides(), 1),
             dilations = toThree(op.getDilations(), 1),
             low = toThree(op.getLow(), 0);
  const int64_t filters_per_group = out.size[1] / op.getGroups();
  int64_t results = 1, window = 1;
  for (int64_t size : out.size) results *= size;
  // The channel within the group, then the place in the kernel.
  const ArrayRef<int64_t> window_shape = ArrayRef(w.size).drop_front();
  for (int64_t size : window_shape) window *= size;
  for (int64_t i = 0; i < results; ++i) {
    const SmallVector<int64_t> o = indexAt(out.size, i);
    for (int64_t j = 0; j < window; ++j) {
      const SmallVector<int64_t> k = indexAt(window_shape, j);
      std::array<int64_t, 5> at = {o[0],
                                   o[1] / filters_per_group * w.size[1] + k[0]};
      bool inside = true;
      for (int dim = 0; dim < 3; ++dim) {
        at[2 + dim] =
            o[2 + dim] * strides[dim] + k[1 + dim] * dilations[dim] - low[dim];
        inside &= at[2 + dim] >= 0 && at[2 + dim] < in.size[2 + dim];
      }
      if (inside)
        visit(in.position(at), w.position({o[1], k[0], k[1], k[2], k[3]}),
              out.position({o[0], o[1], o[2], o[3], o[4]}));
    }
  }
}

FailureOr<SmallVector<Tensor>> rounded(const std::vector<double>& sums,
                                       mlir::RankedTensorType type) {
  Tensor result(type);
  for (int64_t i = 0; i < result.size(); ++i) result.setFloat(i, sums[i]);
  return SmallVector<Tensor>{std::move(result)};
}

}  // namespace

FailureOr<SmallVector<Tensor>> ConvOp::evaluate(ArrayRef<Tensor> operands) {
  const Tensor &input = operands[0], &weight = operands[1];
  std::vector<double> sums(getType().getNumElements());
  forEachProduct(*this, input.shape(), weight.shape(), getType().getShape(),
                 [&](int64_t in, int64_t w, int64_t out) {
                   sums[out] += input.getFloat(in) * weight.getFloat(w);
                 });
  return rounded(sums, getType());
}

FailureOr<SmallVector<Tensor>> ConvInputGradOp::evaluate(
    ArrayRef<Tensor> operands) {
  const Tensor &result_grad = operands[0], &weight = operands[1];
  std::vector<double> sums(getType().getNumElements());
  forEachProduct(*this, getType().getShape(), weight.shape(),
                 result_grad.shape(), [&](int64_t in, int64_t w, int64_t out) {
                   sums[in] += result_grad.getFloat(out) * weight.getFloat(w);
                 });
  return rounded(sums, getType());
}

FailureOr<SmallVector<Tensor>> ConvWeightGradOp::evaluate(
    ArrayRef<Tensor> operands) {
  const Tensor &input = operands[0], &result_grad = operands[1];
  std::vector<double> sums(getType().getNumElements());
  forEachProduct(*this, input.shape(), getType().getShape(),
                 result_grad.shape(), [&](int64_t in, int64_t w, int64_t out) {
                   sums[w] += input.getFloat(in) * result_grad.getFloat(out);
                 });
  return rounded(sums, getType());
}

}  // namespace partita::nn
