// Reference implementations of attention and its gradient, row by row. They
// compute in double throughout and round once to the element type.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "dialects/nn/attention_mask.h"
#include "dialects/nn/dialect.h"

namespace partita::nn {
namespace {

using mlir::ArrayRef;
using mlir::FailureOr;
using mlir::SmallVector;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Element i of query `query` of head `head`, in q or in the result.
double elementOf(const Tensor& tensor, const SmallVector<int64_t>& row,
                 int64_t i) {
  return tensor.getFloat(tensor.position({row[0], row[1], row[2], i}));
}

// Optional operand number `index` of the operation's definition; null if it is
// absent.
template <typename Op>
const Tensor* optionalOperand(Op op, ArrayRef<Tensor> operands, int index) {
  const auto [first, size] = op.getODSOperandIndexAndLength(index);
  return size == 0 ? nullptr : &operands[first];
}

// The masks of nn.attention or its gradient.
class Mask {
 public:
  // `shift` and `first_head` are the numbers of the operands in the operation's
  // definition; the segments follow the shift.
  template <typename Op>
  Mask(Op op, ArrayRef<Tensor> operands, int shift, int first_head)
      : window_(op.getWindow()),
        sinks_(op.getSinks().value_or(0)),
        blocks_(BlockTable::of(op)),
        q_segments_(optionalOperand(op, operands, shift + 1)),
        k_segments_(optionalOperand(op, operands, shift + 2)) {
    last_ = op.getCausalOffset();
    if (const Tensor* moved = optionalOperand(op, operands, shift)) {
      position_ = moved->getInt(0);
      if (last_) *last_ += position_;
    }
    if (const Tensor* first = optionalOperand(op, operands, first_head))
      first_head_ = first->getInt(0);
  }

  // True if query `row` [batch, head, query] sees the key.
  bool sees(const SmallVector<int64_t>& row, int64_t key) const {
    if (last_ && key > row[2] + *last_) return false;
    if (last_ && window_ && key <= row[2] + *last_ - *window_ && key >= sinks_)
      return false;
    if (blocks_ &&
        !blocks_->sees(row[1] + first_head_, row[2] + position_, key))
      return false;
    return !q_segments_ ||
           q_segments_->getInt(q_segments_->position({row[0], row[2]})) ==
               k_segments_->getInt(k_segments_->position({row[0], key}));
  }

 private:
  std::optional<int64_t> last_;  // the last key that query 0 sees
  std::optional<int64_t> window_;
  int64_t sinks_;
  std::optional<BlockTable> blocks_;
  int64_t position_ = 0, first_head_ = 0;  // of query 0 and of head 0
  const Tensor *q_segments_, *k_segments_;
};

// One query [batch, head, query] and the keys that it sees.
struct Row {
  // One entry per key. `slopes` are the derivatives of the capped scores.
  std::vector<double> weights, slopes;
  double lse;

  // With `given_lse`, the weights follow from it.
  template <typename Op>
  Row(Op op, const Tensor& q, const Tensor& k, const Tensor* bias,
      const Mask& mask, const Tensor* given_lse,
      const SmallVector<int64_t>& row);
};

// The position of one score in a bias.
int64_t biasPosition(const Tensor& bias, const SmallVector<int64_t>& row,
                     int64_t key) {
  SmallVector<int64_t> at = {row[0], row[1], row[2], key};
  for (int dim = 0; dim < 4; ++dim)
    at[dim] = bias.shape()[dim] == 1 ? 0 : at[dim];
  return bias.position(at);
}

template <typename Op>
Row::Row(Op op, const Tensor& q, const Tensor& k, const Tensor* bias,
         const Mask& mask, const Tensor* given_lse,
         const SmallVector<int64_t>& row) {
  const int64_t heads_per_group = q.shape()[1] / k.shape()[1];
  const double scale = op.getScale().convertToDouble(),
               softcap = op.getSoftcap().convertToDouble();
  for (int64_t key = 0; key < k.shape()[2]; ++key) {
    double score = 0;
    for (int64_t i = 0; i < q.shape()[3]; ++i)
      score += elementOf(q, row, i) *
               elementOf(k, {row[0], row[1] / heads_per_group, key}, i);
    score *= scale;
    const double tanh = softcap > 0 ? std::tanh(score / softcap) : 0;
    if (softcap > 0) score = softcap * tanh;
    if (bias) score += bias->getFloat(biasPosition(*bias, row, key));
    if (!mask.sees(row, key)) score = -kInfinity;
    weights.push_back(score);
    slopes.push_back(1 - tanh * tanh);
  }
  double highest = weights.empty()
                       ? -kInfinity
                       : *std::max_element(weights.begin(), weights.end());
  if (given_lse)
    highest =
        given_lse->getFloat(given_lse->position({row[0], row[1], row[2]}));
  double sum = 0;
  for (double& weight : weights) {
    // A query that sees no key gives zeros.
    weight = highest == -kInfinity ? 0 : std::exp(weight - highest);
    sum += weight;
  }
  lse = sum == 0 ? -kInfinity : highest + std::log(sum);
  if (given_lse) return;
  for (double& weight : weights) weight = sum == 0 ? 0 : weight / sum;
}

// Calls `visit` with each [batch, head, query].
template <typename Visit>
void forEachRow(const Tensor& q, Visit visit) {
  int64_t rows = 1;
  for (int64_t size : q.shape().drop_back()) rows *= size;
  for (int64_t row = 0; row < rows; ++row)
    visit(indexAt(q.shape().drop_back(), row));
}

Tensor rounded(const std::vector<double>& values, mlir::Type type) {
  Tensor tensor(mlir::cast<mlir::RankedTensorType>(type));
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.setFloat(i, values[i]);
  return tensor;
}

// Adds one row's contribution to the gradients of q, k, v and the bias (if
// present). All are row-major.
void addRowGradients(AttentionGradOp op, ArrayRef<Tensor> operands,
                     const Mask& mask, const SmallVector<int64_t>& row,
                     std::vector<std::vector<double>>& grads) {
  const Tensor &q = operands[0], &k = operands[1], &v = operands[2],
               &result = operands[3], &result_grad = operands[4];
  const Tensor* bias = op.getBias() ? &operands[5] : nullptr;
  const double scale = op.getScale().convertToDouble();
  const int64_t group = row[1] / (q.shape()[1] / k.shape()[1]);
  const Row softmax(op, q, k, bias, mask, optionalOperand(op, operands, 9),
                    row);
  double mean = 0;
  for (int64_t i = 0; i < v.shape()[3]; ++i)
    mean += elementOf(result, row, i) * elementOf(result_grad, row, i);
  for (int64_t key = 0; key < k.shape()[2]; ++key) {
    const SmallVector<int64_t> key_row = {row[0], group, key};
    double weight_grad = 0;
    for (int64_t i = 0; i < v.shape()[3]; ++i) {
      weight_grad += elementOf(result_grad, row, i) * elementOf(v, key_row, i);
      grads[2][v.position({row[0], group, key, i})] +=
          softmax.weights[key] * elementOf(result_grad, row, i);
    }
    const double biased = softmax.weights[key] * (weight_grad - mean),
                 score = biased * softmax.slopes[key] * scale;
    if (bias) grads[3][biasPosition(*bias, row, key)] += biased;
    for (int64_t i = 0; i < q.shape()[3]; ++i) {
      grads[0][q.position({row[0], row[1], row[2], i})] +=
          score * elementOf(k, key_row, i);
      grads[1][k.position({row[0], group, key, i})] +=
          score * elementOf(q, row, i);
    }
  }
}

}  // namespace

FailureOr<SmallVector<Tensor>> AttentionOp::evaluate(
    ArrayRef<Tensor> operands) {
  const Tensor &q = operands[0], &k = operands[1], &v = operands[2];
  const Tensor* bias = getBias() ? &operands[3] : nullptr;
  const int64_t heads_per_group = q.shape()[1] / k.shape()[1];
  const Mask mask(*this, operands, /*shift=*/4, /*first_head=*/7);
  std::vector<double> sums(getResult().getType().getNumElements()), lse;
  forEachRow(q, [&](const SmallVector<int64_t>& row) {
    const Row softmax(*this, q, k, bias, mask, nullptr, row);
    lse.push_back(softmax.lse);
    for (int64_t key = 0; key < v.shape()[2]; ++key) {
      for (int64_t i = 0; i < v.shape()[3]; ++i)
        sums[((row[0] * q.shape()[1] + row[1]) * q.shape()[2] + row[2]) *
                 v.shape()[3] +
             i] += softmax.weights[key] *
                   elementOf(v, {row[0], row[1] / heads_per_group, key}, i);
    }
  });
  SmallVector<Tensor> results = {rounded(sums, getResult().getType())};
  if (getLse()) results.push_back(rounded(lse, getLse().getType()));
  return results;
}

FailureOr<SmallVector<Tensor>> AttentionGradOp::evaluate(
    ArrayRef<Tensor> operands) {
  std::vector<std::vector<double>> grads;
  for (int operand : {0, 1, 2}) grads.emplace_back(operands[operand].size());
  if (getBias()) grads.emplace_back(operands[5].size());
  const Mask mask(*this, operands, /*shift=*/6, /*first_head=*/10);
  forEachRow(operands[0], [&](const SmallVector<int64_t>& row) {
    addRowGradients(*this, operands, mask, row, grads);
  });
  SmallVector<Tensor> results;
  for (mlir::Value result : (*this)->getResults())
    results.push_back(rounded(grads[results.size()], result.getType()));
  return results;
}

}  // namespace partita::nn
