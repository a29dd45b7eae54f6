// Reference implementations of the composites. They compute in double
// throughout and round once to the element type.
#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "dialects/nn/dialect.h"
#include "dialects/nn/philox.h"

namespace partita::nn {
namespace {

using mlir::ArrayRef;
using mlir::FailureOr;
using mlir::SmallVector;

constexpr double kPi = 3.141592653589793;

FailureOr<SmallVector<Tensor>> one(Tensor result) {
  return SmallVector<Tensor>{std::move(result)};
}

int64_t product(ArrayRef<int64_t> sizes) {
  int64_t result = 1;
  for (int64_t size : sizes) result *= size;
  return result;
}

// Subtracts the maximum from all values and returns log(sum(exp(x))) of the
// differences. Adding that logarithm to a huge maximum would lose it.
double shiftAndLogSumExp(std::vector<double>& values) {
  const double highest = *std::max_element(values.begin(), values.end());
  double sum = 0;
  for (double& value : values) {
    value -= highest;
    sum += std::exp(value);
  }
  return std::log(sum);
}

struct Moments {
  double mean;
  double variance;  // population variance
};

Moments momentsOf(const std::vector<double>& values) {
  double sum = 0, squares = 0;
  for (double value : values) sum += value;
  const double mean = sum / values.size();
  for (double value : values) squares += (value - mean) * (value - mean);
  return {mean, squares / values.size()};
}

std::vector<double> valuesAt(const Tensor& tensor, int64_t begin,
                             int64_t count) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(tensor.getFloat(begin + i));
  return values;
}

}  // namespace

FailureOr<SmallVector<Tensor>> RandomOp::evaluate(ArrayRef<Tensor> operands) {
  const uint64_t seed = operands[0].getInt(0);
  const double step = std::ldexp(1.0, -24);
  Tensor result(getType());
  for (int64_t i = 0; i < result.size(); ++i) {
    const auto words = philox(
        {static_cast<uint32_t>(i),
         static_cast<uint32_t>(static_cast<uint64_t>(i) >> 32), 0, 0},
        {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
    if (getDistribution() == Distribution::uniform) {
      result.setFloat(i, (words[0] >> 8) * step);
    } else {
      const double radius =
          std::sqrt(-2 * std::log(((words[0] >> 8) + 1) * step));
      result.setFloat(i, radius * std::cos(2 * kPi * (words[1] >> 8) * step));
    }
  }
  return one(std::move(result));
}

FailureOr<SmallVector<Tensor>> SoftmaxOp::evaluate(ArrayRef<Tensor> operands) {
  const Tensor& input = operands[0];
  Tensor result(getType());
  const int64_t count = input.shape()[getAxis()],
                inner = product(input.shape().drop_front(getAxis() + 1));
  for (int64_t first = 0; first < input.size(); ++first) {
    if (first / inner % count != 0) continue;
    std::vector<double> row;
    for (int64_t i = 0; i < count; ++i)
      row.push_back(input.getFloat(first + i * inner));
    const double total = shiftAndLogSumExp(row);
    for (int64_t i = 0; i < count; ++i) {
      result.setFloat(first + i * inner,
                      getLog() ? row[i] - total : std::exp(row[i] - total));
    }
  }
  return one(std::move(result));
}

FailureOr<SmallVector<Tensor>> LayerNormOp::evaluate(
    ArrayRef<Tensor> operands) {
  const Tensor& input = operands[0];
  const Tensor* scale = getScale() ? &operands[1] : nullptr;
  const Tensor* bias = getBias() ? &operands.back() : nullptr;
  Tensor result(getType());
  const int64_t count = product(input.shape().drop_front(getAxis()));
  for (int64_t first = 0; first < input.size(); first += count) {
    const Moments moments = momentsOf(valuesAt(input, first, count));
    const double deviation =
        std::sqrt(moments.variance + getEpsilon().convertToDouble());
    for (int64_t i = 0; i < count; ++i) {
      const double normal =
          (input.getFloat(first + i) - moments.mean) / deviation;
      result.setFloat(first + i, normal * (scale ? scale->getFloat(i) : 1) +
                                     (bias ? bias->getFloat(i) : 0));
    }
  }
  return one(std::move(result));
}

FailureOr<SmallVector<Tensor>> RmsNormOp::evaluate(ArrayRef<Tensor> operands) {
  const Tensor& input = operands[0];
  Tensor result(getType());
  const int64_t count = product(input.shape().drop_front(getAxis()));
  for (int64_t first = 0; first < input.size(); first += count) {
    double squares = 0;
    for (int64_t i = 0; i < count; ++i)
      squares += input.getFloat(first + i) * input.getFloat(first + i);
    const double root =
        std::sqrt(squares / count + getEpsilon().convertToDouble());
    for (int64_t i = 0; i < count; ++i) {
      result.setFloat(first + i,
                      input.getFloat(first + i) / root *
                          (getScale() ? operands[1].getFloat(i) : 1));
    }
  }
  return one(std::move(result));
}

FailureOr<SmallVector<Tensor>> BatchNormOp::evaluate(
    ArrayRef<Tensor> operands) {
  const Tensor &input = operands[0], &scale = operands[1], &bias = operands[2];
  const int64_t features = input.shape()[getFeature()],
                inner = product(input.shape().drop_front(getFeature() + 1));
  const double momentum = getMomentum().convertToDouble();
  Tensor result(input.type()), new_mean = operands[3],
                               new_variance = operands[4];
  for (int64_t feature = 0; feature < features; ++feature) {
    Moments moments = {operands[3].getFloat(feature),
                       operands[4].getFloat(feature)};
    if (getTraining()) {
      std::vector<double> batch;
      for (int64_t i = 0; i < input.size(); ++i) {
        if (i / inner % features == feature) batch.push_back(input.getFloat(i));
      }
      const Moments old = moments;
      moments = momentsOf(batch);
      const double n = batch.size();
      const double variance = getUnbiased()
                                  ? moments.variance * n / std::max(n - 1, 1.0)
                                  : moments.variance;
      new_mean.setFloat(feature,
                        (1 - momentum) * old.mean + momentum * moments.mean);
      new_variance.setFloat(
          feature, (1 - momentum) * old.variance + momentum * variance);
    }
    const double deviation =
        std::sqrt(moments.variance + getEpsilon().convertToDouble());
    for (int64_t i = 0; i < input.size(); ++i) {
      if (i / inner % features != feature) continue;
      const double normal = (input.getFloat(i) - moments.mean) / deviation;
      result.setFloat(
          i, normal * scale.getFloat(feature) + bias.getFloat(feature));
    }
  }
  if (!getTraining()) return one(std::move(result));
  return SmallVector<Tensor>{std::move(result), std::move(new_mean),
                             std::move(new_variance)};
}

FailureOr<SmallVector<Tensor>> CrossEntropyOp::evaluate(
    ArrayRef<Tensor> operands) {
  const Tensor &logits = operands[0], &targets = operands[1];
  const int64_t classes = logits.shape().back();
  const double smoothing = getLabelSmoothing().convertToDouble();
  Tensor result(getType());
  for (int64_t i = 0; i < targets.size(); ++i) {
    if (targets.getInt(i) == static_cast<int64_t>(getIgnoreIndex())) continue;
    if (classes == 0) return mlir::failure();
    std::vector<double> row = valuesAt(logits, i * classes, classes);
    const double total = shiftAndLogSumExp(row);
    const int64_t target =
        std::clamp<int64_t>(targets.getInt(i), 0, classes - 1);
    double loss = (1 - smoothing) * (total - row[target]);
    if (smoothing > 0) {
      for (double logit : row) loss += smoothing / classes * (total - logit);
    }
    result.setFloat(i, loss);
  }
  return one(std::move(result));
}

FailureOr<SmallVector<Tensor>> DequantizeOp::evaluate(
    ArrayRef<Tensor> operands) {
  const Tensor &packed = operands[0], &scale = operands[1];
  const int64_t bytes = packed.shape().back();
  Tensor result(getType());
  for (int64_t i = 0; i < packed.size(); ++i) {
    const int64_t group = i / bytes, byte = packed.getInt(i) & 255;
    const int64_t zero = getZero() ? operands[2].getInt(group) : 8;
    const double step = scale.getFloat(group);
    result.setFloat(2 * i, step * static_cast<double>((byte & 15) - zero));
    result.setFloat(2 * i + 1, step * static_cast<double>((byte >> 4) - zero));
  }
  return one(std::move(result));
}

}  // namespace partita::nn
