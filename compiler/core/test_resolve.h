// Test fixture: the resolved sharding of an operation, as text and counts.
#ifndef PARTITA_COMPILER_CORE_TEST_RESOLVE_H_
#define PARTITA_COMPILER_CORE_TEST_RESOLVE_H_

#include <map>
#include <string>
#include <vector>

#include "compiler/core/conflict.h"
#include "compiler/core/reshard.h"
#include "compiler/core/test_graph.h"

namespace partita::core {

class ResolveTest : public GraphTest {
 protected:
  OpSharding Resolved(int op) { return Resolve(graph_, op, shardings_); }

  // Formats as "operands -> results".
  std::string Shown(int op) {
    const OpSharding resolved = Resolved(op);
    std::string text;
    for (const Sharding& sharding : resolved.operands)
      text += (text.empty() ? "" : " ") + Text(sharding);
    text += " ->";
    for (const Sharding& sharding : resolved.results)
      text += " " + Text(sharding);
    return text;
  }

  std::vector<std::string> Reasons(int op) {
    std::vector<std::string> reasons;
    for (const Conflict& conflict : Resolved(op).conflicts)
      reasons.push_back(Describe(graph_, conflict));
    return reasons;
  }

  // Counts, by kind, the collectives that reshard the operation's operands
  // before it and its results after it.
  using Counts = std::map<std::string, int>;
  Counts Moves(int op) {
    Counts moves;
    const OpSharding resolved = Resolved(op);
    const auto move = [&](int value, const Sharding& from, const Sharding& to) {
      const ReshardPlan plan =
          PlanReshard(graph_.mesh, graph_.values[value].shape, 4, from, to);
      for (const Collective& step : plan.steps) ++moves[NameOf(step.kind)];
    };
    const Op& plain = graph_.ops[op];
    for (size_t i = 0; i < plain.operands.size(); ++i)
      move(plain.operands[i], shardings_[plain.operands[i]],
           resolved.operands[i]);
    for (size_t i = 0; i < plain.results.size(); ++i)
      move(plain.results[i], resolved.results[i], shardings_[plain.results[i]]);
    return moves;
  }

  // Puts an axis on a dimension as an entry of a plan does.
  void Seed(int value, int dim, const std::string& axis, int priority) {
    if (Uses(shardings_[value], Ref(axis))) return;
    shardings_[value].dims[dim] = {{Ref(axis)}, 0, true};
    shardings_[value].dims[dim].SetPriority(priority);
  }

  // The layer x[B, L, E] -> norm -> up -> gelu -> down -> + x.
  struct Layer {
    int x, norm, up, h, gelu, down, y, sum;
    int up_op, down_op, sum_op;
  };
  Layer AddLayer() {
    Layer layer;
    layer.x = AddValue({4, 8, 16}, "", "x");
    layer.norm = AddValue({4, 8, 16}, "", "norm");
    layer.up = AddValue({16, 32}, "", "up.weight");
    layer.h = AddValue({4, 8, 32}, "", "h");
    layer.gelu = AddValue({4, 8, 32}, "", "gelu");
    layer.down = AddValue({32, 16}, "", "down.weight");
    layer.y = AddValue({4, 8, 16}, "", "y");
    layer.sum = AddValue({4, 8, 16}, "", "sum");
    AddOp("b l e -> b l e", {layer.x}, {layer.norm}, {},
          {{'e', FactorKind::kDecompose}});
    layer.up_op =
        AddOp("b l e, e m -> b l m", {layer.norm, layer.up}, {layer.h});
    AddElementwise({layer.h}, layer.gelu);
    layer.down_op =
        AddOp("b l m, m e -> b l e", {layer.gelu, layer.down}, {layer.y});
    layer.sum_op = AddElementwise({layer.x, layer.y}, layer.sum);
    return layer;
  }
};

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_TEST_RESOLVE_H_
