#include "dialects/nn/shard_experts.h"

#include <algorithm>

#include "dialects/nn/experts.h"

namespace partita::nn {
namespace {

using mlir::FailureOr;
using mlir::SmallVector;

template <typename Op>
FailureOr<SmallVector<Tensor>> evaluate(
    Op local, SmallVector<Tensor> operands,
    const std::vector<std::vector<std::vector<int64_t>>>& rows) {
  const ExpertParameters at(local);
  const std::vector<int64_t>& hidden = rows[at.up][1];
  operands[1] = positionsIn(rows[at.up][0], operands[1]);
  const bool is_first = !hidden.empty() && hidden.front() == 0;
  if (is_first || at.down_bias < 0) return local.evaluate(operands);
  operands[at.down_bias] = Tensor(operands[at.down_bias].type());
  auto results = local.evaluate(operands);
  if (mlir::succeeded(results) && results->size() > 1) {
    Tensor& grad = (*results)[at.gradOf(at.down_bias)];
    grad = Tensor(grad.type());
  }
  return results;
}

}  // namespace

Tensor positionsIn(const std::vector<int64_t>& held, const Tensor& ids) {
  Tensor positions(ids.type());
  for (int64_t i = 0; i < ids.size(); ++i) {
    const auto place =
        std::lower_bound(held.begin(), held.end(), ids.getInt(i));
    const bool is_here = place != held.end() && *place == ids.getInt(i);
    positions.setInt(i, is_here ? place - held.begin() : -1);
  }
  return positions;
}

FailureOr<SmallVector<Tensor>> evaluateExpertShard(
    ExpertsOp local, SmallVector<Tensor> operands,
    const std::vector<std::vector<std::vector<int64_t>>>& rows) {
  return evaluate(local, std::move(operands), rows);
}

FailureOr<SmallVector<Tensor>> evaluateExpertShard(
    ExpertsGradOp local, SmallVector<Tensor> operands,
    const std::vector<std::vector<std::vector<int64_t>>>& rows) {
  return evaluate(local, std::move(operands), rows);
}

}  // namespace partita::nn
