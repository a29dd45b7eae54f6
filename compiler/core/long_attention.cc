// Compares the bytes of each way, operation by operation.
#include "compiler/core/long_attention.h"

#include <algorithm>

#include "compiler/core/projection.h"
#include "compiler/core/reshard.h"

namespace partita::core {
namespace {

bool Holds(const DimFactors& factors, int factor) {
  return std::count(factors.begin(), factors.end(), factor) > 0;
}

// True if an operand divides the queries.
bool DividesQueries(const Op& op, const std::vector<Sharding>& shardings) {
  for (const OpTensor& tensor : TensorsOf(op)) {
    if (tensor.is_result) continue;
    for (size_t d = 0; d < tensor.factors->size(); ++d)
      if (Holds((*tensor.factors)[d], op.rule.attention->queries) &&
          !shardings[tensor.value].dims[d].axes.empty())
        return true;
  }
  return false;
}

struct Cost {
  int64_t bytes = 0;  // that a device moves before and after the operation
  bool is_uneven = false;
};

Cost CostOf(const Graph& graph, int op,
            const std::vector<Sharding>& shardings) {
  const OpSharding resolved = Resolve(graph, op, shardings);
  Cost cost;
  const auto move = [&](int id, const Sharding& from, const Sharding& to) {
    const Value& value = graph.values[id];
    for (const Collective& step :
         PlanReshard(graph.mesh, value.shape, value.element_bytes, from, to)
             .steps)
      cost.bytes += step.bytes;
  };
  const Op& plain = graph.ops[op];
  for (size_t i = 0; i < plain.operands.size(); ++i) {
    const int id = plain.operands[i];
    move(id, shardings[id], resolved.operands[i]);
    cost.is_uneven |= IsUneven(graph.values[id].shape, resolved.operands[i]);
  }
  for (size_t i = 0; i < plain.results.size(); ++i)
    move(plain.results[i], resolved.results[i], shardings[plain.results[i]]);
  return cost;
}

}  // namespace

ShardingRule AsRing(const ShardingRule& rule) {
  ShardingRule ring = rule;
  for (std::vector<TensorFactors>* tensors : {&ring.operands, &ring.results})
    for (TensorFactors& tensor : *tensors)
      for (DimFactors& factors : tensor)
        std::replace(factors.begin(), factors.end(), rule.attention->keys,
                     rule.attention->queries);
  return ring;
}

bool CanRing(const ShardingRule& rule) {
  const int queries = rule.attention->queries, keys = rule.attention->keys;
  if (rule.factors[queries].size != rule.factors[keys].size ||
      rule.attention->sees_absolute_keys)
    return false;
  for (const std::vector<TensorFactors>* tensors :
       {&rule.operands, &rule.results})
    for (const TensorFactors& tensor : *tensors) {
      const auto has = [&](int factor) {
        return std::any_of(
            tensor.begin(), tensor.end(),
            [&](const DimFactors& factors) { return Holds(factors, factor); });
      };
      if (has(queries) && has(keys)) return false;
    }
  return true;
}

LongAttentionCounts ChooseLongAttention(const std::vector<Sharding>& shardings,
                                        std::optional<LongAttention> choice,
                                        Graph& graph) {
  LongAttentionCounts counts;
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    Op& op = graph.ops[i];
    if (!op.rule.attention) continue;
    op.attention = LongAttention::kGather;
    if (!DividesQueries(op, shardings)) continue;
    ++counts.divided;
    const int index = static_cast<int>(i);
    if (choice == LongAttention::kRing) {
      if (CanRing(op.rule)) {
        op.attention = LongAttention::kRing;
        op.rule = AsRing(op.rule);
      }
    } else if (choice) {
      op.attention = *choice;
    } else {
      const Cost whole = CostOf(graph, index, shardings);
      op.attention = LongAttention::kUlysses;
      const Cost exchanged = CostOf(graph, index, shardings);
      if (exchanged.is_uneven || exchanged.bytes >= whole.bytes)
        op.attention = LongAttention::kGather;
    }
    counts.as_asked += !choice || op.attention == *choice;
  }
  return counts;
}

}  // namespace partita::core
