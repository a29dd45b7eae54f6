// Compares the bytes of both ways, operation by operation.
#include "compiler/core/choose_exchanges.h"

#include <algorithm>

#include "compiler/core/projection.h"
#include "compiler/core/reshard.h"

namespace partita::core {
namespace {

// True if an operand divides the factor that the exchange moves from.
bool MayExchange(const Op& op, const std::vector<Sharding>& shardings) {
  if (!op.rule.exchange) return false;
  for (const OpTensor& tensor : TensorsOf(op)) {
    if (tensor.is_result) continue;
    for (size_t d = 0; d < tensor.factors->size(); ++d) {
      const DimFactors& factors = (*tensor.factors)[d];
      if (std::count(factors.begin(), factors.end(), op.rule.exchange->from) &&
          !shardings[tensor.value].dims[d].axes.empty())
        return true;
    }
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

void ChooseExchanges(const std::vector<Sharding>& shardings,
                     ExchangeChoice choice, Graph& graph) {
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    Op& op = graph.ops[i];
    op.exchanges = false;
    if (choice == ExchangeChoice::kNever || !MayExchange(op, shardings))
      continue;
    const int index = static_cast<int>(i);
    const Cost whole = CostOf(graph, index, shardings);
    op.exchanges = true;
    if (choice == ExchangeChoice::kAlways) continue;
    const Cost exchanged = CostOf(graph, index, shardings);
    op.exchanges = !exchanged.is_uneven && exchanged.bytes < whole.bytes;
  }
}

}  // namespace partita::core
