// Compares the bytes of gathering all rows with those of sending each row to
// its experts, operation by operation.
#include "compiler/core/expert_exchange.h"

#include <algorithm>

#include "compiler/core/projection.h"
#include "compiler/core/reshard.h"
#include "compiler/core/traffic.h"

namespace partita::core {
namespace {

constexpr int kIds = 1;  // operand of the experts that a row chooses
constexpr int kFirstResultGrad = 3;  // operand of the gradient operation
constexpr int64_t kIndexBytes = 8;

bool HoldsFactor(const TensorFactors& tensor, int factor) {
  return std::any_of(tensor.begin(), tensor.end(), [&](const DimFactors& dim) {
    return std::count(dim.begin(), dim.end(), factor) > 0;
  });
}

// Factors of the leading dimensions, which `ids` has, too.
bool IsRowFactor(const ShardingRule& rule, int factor) {
  return HoldsFactor(rule.operands[0], factor) &&
         HoldsFactor(rule.operands[kIds], factor);
}

bool IsGradient(const Op& op) { return op.results.size() > 1; }

// The axes of the rows that `sharding`, of operand 0, has.
std::vector<AxisRef> RowAxes(const Sharding& sharding) {
  std::vector<AxisRef> axes;
  for (size_t d = 0; d + 1 < sharding.dims.size(); ++d)
    axes.insert(axes.end(), sharding.dims[d].axes.begin(),
                sharding.dims[d].axes.end());
  return axes;
}

bool OverlapAny(const std::vector<AxisRef>& some,
                const std::vector<AxisRef>& list) {
  return std::any_of(some.begin(), some.end(), [&](const AxisRef& axis) {
    return core::OverlapAny(axis, list);
  });
}

// The bytes that a device moves to and from the shardings of the operation.
int64_t ReshardBytes(const Graph& graph, const Op& op,
                     const OpSharding& resolved,
                     const std::vector<Sharding>& shardings) {
  int64_t bytes = 0;
  const auto move = [&](int id, const Sharding& from, const Sharding& to) {
    // A value may stay a partial sum in one of the two ways only.
    for (const AxisRef& axis : to.unreduced)
      if (!core::OverlapAny(axis, from.unreduced)) return;
    const Value& value = graph.values[id];
    for (const Collective& step :
         PlanReshard(graph.mesh, value.shape, value.element_bytes, from, to)
             .steps)
      bytes += step.bytes;
  };
  for (size_t i = 0; i < op.operands.size(); ++i)
    move(op.operands[i], shardings[op.operands[i]], resolved.operands[i]);
  for (size_t i = 0; i < op.results.size(); ++i)
    move(op.results[i], resolved.results[i], shardings[op.results[i]]);
  return bytes;
}

// The bytes of the rows that a device sends and receives back.
int64_t RowBytes(const Graph& graph, const Op& op, const OpSharding& resolved) {
  const auto local = [&](int operand) {
    return LocalShape(graph.values[op.operands[operand]].shape,
                      resolved.operands[operand]);
  };
  const int64_t element = graph.values[op.operands[0]].element_bytes;
  int64_t sent = 1;  // rows, once per choice
  for (int64_t size : local(kIds)) sent *= size;
  const int64_t group = SizeOf(resolved.factors[op.rule.experts].axes);
  const int64_t x = local(0).back();
  // Out and back: x and the result, or x, its gradient, the result's gradient,
  // and the weights with their gradients.
  int64_t width = 0;
  if (IsGradient(op))
    width = 2 * x + local(kFirstResultGrad).back() + 2;
  else
    width =
        x + LocalShape(graph.values[op.results[0]].shape, resolved.results[0])
                .back();
  return (sent - sent / group) * (width * element + kIndexBytes);
}

}  // namespace

bool ShareAxes(const Op& op, int factor, int other) {
  if (op.rows.way != ExpertExchange::kRows) return false;
  return (factor == op.rule.experts && IsRowFactor(op.rule, other)) ||
         (other == op.rule.experts && IsRowFactor(op.rule, factor));
}

bool CompareExpertExchange(Graph& graph, int index,
                           const std::vector<Sharding>& shardings) {
  Op& op = graph.ops[index];
  const RowExchange chosen = op.rows;
  op.rows.way = ExpertExchange::kGather;
  const OpSharding gathered = Resolve(graph, index, shardings);
  op.rows.way = ExpertExchange::kRows;
  const OpSharding sent = Resolve(graph, index, shardings);
  op.rows = chosen;
  const std::vector<AxisRef>& experts = gathered.factors[op.rule.experts].axes;
  const std::vector<AxisRef> rows = RowAxes(sent.operands[0]);
  if (experts.empty() ||
      !std::all_of(experts.begin(), experts.end(), [&](const AxisRef& axis) {
        return std::count(rows.begin(), rows.end(), axis) > 0;
      }))
    return false;
  op.rows.gathered_bytes = ReshardBytes(graph, op, gathered, shardings);
  op.rows.sent_bytes =
      ReshardBytes(graph, op, sent, shardings) + RowBytes(graph, op, sent);
  return true;
}

ExpertCounts ChooseExpertExchange(const std::vector<Sharding>& shardings,
                                  const ExpertChoice& choice, Graph& graph) {
  ExpertCounts counts;
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    Op& op = graph.ops[i];
    op.rows = RowExchange();
    if (op.rule.experts < 0) continue;
    const int index = static_cast<int>(i);
    const OpSharding gathered = Resolve(graph, index, shardings);
    if (!OverlapAny(RowAxes(shardings[op.operands[0]]),
                    gathered.factors[op.rule.experts].axes))
      continue;
    ++counts.shared;
    if (CompareExpertExchange(graph, index, shardings)) {
      const bool is_cheaper = op.rows.sent_bytes < op.rows.gathered_bytes;
      op.rows.way = choice.exchange.value_or(
          is_cheaper ? ExpertExchange::kRows : ExpertExchange::kGather);
      if (op.rows.way == ExpertExchange::kRows) {
        op.rows.bound = choice.bound;
        ++counts.by_rows;
      }
    }
    counts.as_asked += !choice.exchange || *choice.exchange == op.rows.way;
  }
  return counts;
}

}  // namespace partita::core
