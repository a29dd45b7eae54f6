// Reference implementations of mixtures of experts and of grouped products, row
// by row. Sums are in double.
#include <cmath>
#include <vector>

#include "dialects/nn/dialect.h"
#include "dialects/nn/experts.h"

namespace partita::nn {
namespace {

using mlir::ArrayRef;
using mlir::FailureOr;
using mlir::SmallVector;

using Row = std::vector<double>;

Tensor rounded(const Row& values, mlir::Type type) {
  Tensor tensor(mlir::cast<mlir::RankedTensorType>(type));
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.setFloat(i, values[i]);
  return tensor;
}

bool isInside(int64_t id, int64_t count) { return id >= 0 && id < count; }

constexpr double kSqrtHalf = 0.70710678118654752440;
constexpr double kSqrtTwoOverPi = 0.79788456080286535588;
constexpr double kCubic = 0.044715;  // of the approximation with tanh

double activate(ExpertActivation kind, double x) {
  switch (kind) {
    case ExpertActivation::relu:
      return std::max(x, 0.0);
    case ExpertActivation::gelu:
      return 0.5 * x * std::erfc(-x * kSqrtHalf);
    case ExpertActivation::gelu_tanh:
      return 0.5 * x *
             (1 + std::tanh(kSqrtTwoOverPi * (x + kCubic * x * x * x)));
    case ExpertActivation::silu:
      return x / (1 + std::exp(-x));
  }
  return 0;
}

double slopeAt(ExpertActivation kind, double x) {
  switch (kind) {
    case ExpertActivation::relu:
      return x > 0 ? 1 : 0;
    case ExpertActivation::gelu:
      return 0.5 * std::erfc(-x * kSqrtHalf) +
             x * 0.5 * kSqrtTwoOverPi * std::exp(-0.5 * x * x);
    case ExpertActivation::gelu_tanh: {
      const double tanh = std::tanh(kSqrtTwoOverPi * (x + kCubic * x * x * x));
      return 0.5 * (1 + tanh) + 0.5 * x * (1 - tanh * tanh) * kSqrtTwoOverPi *
                                    (1 + 3 * kCubic * x * x);
    }
    case ExpertActivation::silu: {
      const double sigmoid = 1 / (1 + std::exp(-x));
      return sigmoid * (1 + x * (1 - sigmoid));
    }
  }
  return 0;
}

// The experts on single rows. With 16-bit floats, `round` rounds to the element
// type, else it changes nothing.
template <typename Op>
class Experts {
 public:
  Experts(Op op, ArrayRef<Tensor> operands)
      : activation_(op.getActivation()),
        element_(
            mlir::cast<mlir::FloatType>(op.getX().getType().getElementType())),
        is_narrow_(element_.getIntOrFloatBitWidth() <= 16),
        at_(op),
        operands_(operands) {}

  const Tensor* parameter(int number) const {
    return number < 0 ? nullptr : &operands_[number];
  }
  const ExpertParameters& at() const { return at_; }
  int64_t count() const { return operands_[at_.up].shape()[0]; }
  int64_t hidden() const { return operands_[at_.up].shape()[1]; }
  int64_t width() const { return operands_[at_.up].shape()[2]; }
  int64_t out() const { return operands_[at_.down].shape()[1]; }

  double round(double value) const {
    return is_narrow_ ? roundToType(value, element_) : value;
  }

  // Matrix `expert` of parameter `number` times `row`, or its transpose.
  Row times(int number, int64_t expert, const Row& row,
            bool transposed = false) const {
    const Tensor& matrices = operands_[number];
    const int64_t rows = matrices.shape()[transposed ? 2 : 1];
    Row product(rows);
    for (int64_t i = 0; i < rows; ++i) {
      for (size_t j = 0; j < row.size(); ++j)
        product[i] +=
            row[j] *
            matrices.getFloat(matrices.position(
                transposed
                    ? SmallVector<int64_t>{expert, static_cast<int64_t>(j), i}
                    : SmallVector<int64_t>{expert, i,
                                           static_cast<int64_t>(j)}));
      product[i] = round(product[i]);
    }
    return product;
  }
  // The same, plus parameter `bias` if it is present.
  Row affine(int number, int bias, int64_t expert, const Row& row) const {
    Row sums = times(number, expert, row);
    for (size_t i = 0; bias >= 0 && i < sums.size(); ++i)
      sums[i] += biasAt(bias, expert, i);
    return sums;
  }
  double biasAt(int bias, int64_t expert, int64_t i) const {
    return bias < 0 ? 0
                    : operands_[bias].getFloat(
                          operands_[bias].position({expert, i}));
  }

  // The values of `expert` for x.
  struct Inner {
    Row gate, up, h;  // gate is empty without one
  };
  Inner inner(int64_t expert, const Row& x) const {
    Inner row;
    if (at_.gate >= 0) row.gate = affine(at_.gate, at_.gate_bias, expert, x);
    row.up = affine(at_.up, at_.up_bias, expert, x);
    for (int64_t i = 0; i < hidden(); ++i)
      row.h.push_back(round(
          row.gate.empty() ? activate(activation_, row.up[i])
                           : activate(activation_, row.gate[i]) * row.up[i]));
    return row;
  }
  // Changes the gradient of h into the gradients of gate and up.
  std::pair<Row, Row> innerGrads(const Inner& row, const Row& h_grad) const {
    Row gate, up;
    for (int64_t i = 0; i < hidden(); ++i) {
      if (row.gate.empty()) {
        up.push_back(round(h_grad[i] * slopeAt(activation_, row.up[i])));
        continue;
      }
      up.push_back(round(h_grad[i] * activate(activation_, row.gate[i])));
      gate.push_back(
          round(h_grad[i] * row.up[i] * slopeAt(activation_, row.gate[i])));
    }
    return {gate, up};
  }

 private:
  ExpertActivation activation_;
  mlir::FloatType element_;
  bool is_narrow_;
  ExpertParameters at_;
  ArrayRef<Tensor> operands_;
};

Row rowOf(const Tensor& tensor, int64_t row, int64_t width) {
  Row values;
  for (int64_t i = 0; i < width; ++i)
    values.push_back(tensor.getFloat(row * width + i));
  return values;
}

void addTo(Row& sums, int64_t first, const Row& more) {
  for (size_t i = 0; i < more.size(); ++i) sums[first + i] += more[i];
}

// Adds the outer product g x^T to matrix `expert`.
void addOuter(Row& sums, int64_t expert, const Row& g, const Row& x) {
  for (size_t i = 0; i < g.size(); ++i)
    for (size_t j = 0; j < x.size(); ++j)
      sums[(expert * g.size() + i) * x.size() + j] += g[i] * x[j];
}

}  // namespace

FailureOr<SmallVector<Tensor>> GroupedDotOp::evaluate(
    ArrayRef<Tensor> operands) {
  const Tensor &x = operands[0], &ids = operands[1], &w = operands[2];
  const int64_t out = getType().getDimSize(1);
  Row sums(getType().getNumElements());
  for (int64_t row = 0; row < x.shape()[0]; ++row) {
    const int64_t id = ids.getInt(row);
    if (!isInside(id, w.shape()[0])) continue;
    for (int64_t i = 0; i < out; ++i)
      for (int64_t j = 0; j < x.shape()[1]; ++j)
        sums[row * out + i] +=
            x.getFloat(x.position({row, j})) *
            w.getFloat(getTransposed() ? w.position({id, j, i})
                                       : w.position({id, i, j}));
  }
  return SmallVector<Tensor>{rounded(sums, getType())};
}

FailureOr<SmallVector<Tensor>> GroupedDotWeightGradOp::evaluate(
    ArrayRef<Tensor> operands) {
  const Tensor &x = operands[0], &ids = operands[1], &g = operands[2];
  Row sums(getType().getNumElements());
  for (int64_t row = 0; row < x.shape()[0]; ++row) {
    const int64_t id = ids.getInt(row);
    if (isInside(id, getType().getDimSize(0)))
      addOuter(sums, id, rowOf(g, row, g.shape()[1]),
               rowOf(x, row, x.shape()[1]));
  }
  return SmallVector<Tensor>{rounded(sums, getType())};
}

FailureOr<SmallVector<Tensor>> ExpertsOp::evaluate(ArrayRef<Tensor> operands) {
  const Experts experts(*this, operands);
  const Tensor &x = operands[0], &ids = operands[1], &weights = operands[2];
  const int64_t choices = ids.shape().back(), out = experts.out();
  Row sums(getType().getNumElements());
  for (int64_t i = 0; i < ids.size(); ++i) {
    const int64_t id = ids.getInt(i), row = i / choices;
    if (!isInside(id, experts.count())) continue;
    Row y = experts.affine(experts.at().down, experts.at().down_bias, id,
                           experts.inner(id, rowOf(x, row, experts.width())).h);
    for (double& value : y) value *= weights.getFloat(i);
    addTo(sums, row * out, y);
  }
  return SmallVector<Tensor>{rounded(sums, getType())};
}

FailureOr<SmallVector<Tensor>> ExpertsGradOp::evaluate(
    ArrayRef<Tensor> operands) {
  const Experts experts(*this, operands);
  const ExpertParameters& at = experts.at();
  const Tensor &ids = operands[1], &weights = operands[2];
  const int64_t choices = ids.shape().back(), width = experts.width(),
                hidden = experts.hidden(), out = experts.out();
  std::vector<Row> grads;
  for (mlir::Value result : (*this)->getResults())
    grads.emplace_back(
        mlir::cast<mlir::RankedTensorType>(result.getType()).getNumElements());
  for (int64_t i = 0; i < ids.size(); ++i) {
    const int64_t id = ids.getInt(i), row = i / choices;
    if (!isInside(id, experts.count())) continue;
    const Row x = rowOf(operands[0], row, width),
              g = rowOf(operands[3], row, out);
    const auto inner = experts.inner(id, x);
    // Gradients of h, without and with the weight.
    Row h_grad = experts.times(at.down, id, g, /*transposed=*/true);
    for (int64_t m = 0; m < hidden; ++m) {
      grads[1][i] += h_grad[m] * inner.h[m];
      h_grad[m] *= weights.getFloat(i);
    }
    Row weighted;
    for (int64_t o = 0; o < out; ++o) {
      grads[1][i] += g[o] * experts.biasAt(at.down_bias, id, o);
      weighted.push_back(experts.round(g[o] * weights.getFloat(i)));
    }
    const auto [gate_grad, up_grad] = experts.innerGrads(inner, h_grad);
    const auto addParameters = [&](int matrix, int bias, const Row& grad,
                                   const Row& input) {
      addOuter(grads[at.gradOf(matrix)], id, grad, input);
      if (bias >= 0) addTo(grads[at.gradOf(bias)], id * grad.size(), grad);
    };
    addParameters(at.down, at.down_bias, weighted, inner.h);
    addParameters(at.up, at.up_bias, up_grad, x);
    addTo(grads[0], row * width, experts.times(at.up, id, up_grad, true));
    if (at.gate < 0) continue;
    addParameters(at.gate, at.gate_bias, gate_grad, x);
    addTo(grads[0], row * width, experts.times(at.gate, id, gate_grad, true));
  }
  SmallVector<Tensor> results;
  for (mlir::Value result : (*this)->getResults())
    results.push_back(rounded(grads[results.size()], result.getType()));
  return results;
}

}  // namespace partita::nn
