// Propagation with a worklist. An operation is visited again when one of its
// values has changed; operations of a lower round come first.
#include "compiler/core/propagate.h"

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>
#include <utility>

#include "compiler/core/projection.h"

namespace partita::core {
namespace {

bool Travels(FactorKind kind) {
  return kind == FactorKind::kCarried || IsReduced(kind) || IsHalo(kind);
}

// The axes that the tensors of an operation agree on for one factor.
struct Claim {
  int factor = -1;
  FactorAxes axes;
  int priority = 0;
  int64_t bytes = 0;  // of its source tensor
  int tensor = 0;
  bool contested = false;
};

// Represents a group as an operation that ties all dimensions of its members.
Op OpOfGroup(const Graph& graph, const std::vector<int>& group) {
  Op op;
  op.round = 0;
  op.operands = group;
  if (group.empty()) return op;
  TensorFactors factors;
  for (int64_t size : graph.values[group[0]].shape) {
    factors.push_back({static_cast<int>(op.rule.factors.size())});
    op.rule.factors.push_back({size});
  }
  op.rule.operands.assign(group.size(), factors);
  return op;
}

class Propagator {
 public:
  Propagator(const Graph& graph, int priority, std::vector<Sharding>& shardings)
      : graph_(graph), priority_(priority), shardings_(shardings) {
    for (const std::vector<int>& group : graph.groups)
      groups_.push_back(OpOfGroup(graph, group));
    for (const Op& op : graph.ops) ops_.push_back(&op);
    for (const Op& op : groups_) ops_.push_back(&op);
    queued_.assign(ops_.size(), false);
    users_.resize(graph.values.size());
    for (size_t i = 0; i < ops_.size(); ++i)
      for (const std::vector<int>* values :
           {&ops_[i]->operands, &ops_[i]->results})
        for (int value : *values)
          if (users_[value].empty() ||
              users_[value].back() != static_cast<int>(i))
            users_[value].push_back(static_cast<int>(i));
  }

  void Run() {
    for (size_t i = 0; i < ops_.size(); ++i) Enqueue(static_cast<int>(i));
    while (!queues_.empty()) {
      const auto first = queues_.begin();
      if (first->second.empty()) {
        queues_.erase(first);
        continue;
      }
      const int op = first->second.front();
      first->second.pop_front();
      queued_[op] = false;
      Visit(*ops_[op]);
    }
  }

 private:
  void Enqueue(int op) {
    if (queued_[op] || ops_[op]->direction == Direction::kNone) return;
    queued_[op] = true;
    queues_[ops_[op]->round].push_back(op);
  }

  // True if an axis may travel in this round.
  bool Moves(const AxisRef& axis) const { return axis.priority <= priority_; }
  bool Moves(const DimSharding& dim) const {
    return !dim.axes.empty() && Moves(dim.axes.front());
  }

  bool AnySource(const Op& op) const {
    for (const std::vector<int>* values : {&op.operands, &op.results})
      for (int value : *values)
        for (const DimSharding& dim : shardings_[value].dims)
          if (Moves(dim)) return true;
    return false;
  }

  void Visit(const Op& op) {
    if (!AnySource(op)) return;
    const std::vector<OpTensor> tensors = TensorsOf(op);
    std::vector<TensorProjection> projections;
    for (const OpTensor& tensor : tensors)
      projections.push_back(ProjectTensor(op.rule, *tensor.factors,
                                          graph_.values[tensor.value].shape,
                                          shardings_[tensor.value]));
    const std::vector<Claim> claims = FindClaims(op, tensors, projections);
    for (size_t t = 0; t < tensors.size(); ++t) {
      if (op.direction ==
          (tensors[t].is_result ? Direction::kBackward : Direction::kForward))
        continue;
      bool changed = KeepRowsTogether(op.rule, tensors[t], projections[t]);
      for (const Claim& claim : claims)
        if (Extend(op.rule, tensors[t], claim, projections[t]) ||
            TakeBlock(op.rule, tensors[t], claim, projections[t]))
          changed = true;
      if (changed)
        for (int user : users_[tensors[t].value]) Enqueue(user);
    }
  }

  // Returns claims in the order in which they take axes: by priority, then the
  // larger tensor, then the first. A factor whose axes have several priorities
  // makes one claim per priority.
  std::vector<Claim> FindClaims(
      const Op& op, const std::vector<OpTensor>& tensors,
      const std::vector<TensorProjection>& projections) const {
    std::vector<Claim> claims;
    for (size_t f = 0; f < op.rule.factors.size(); ++f) {
      if (!Travels(op.rule.factors[f].kind)) continue;
      Claim claim;
      claim.factor = static_cast<int>(f);
      for (size_t t = 0; t < tensors.size(); ++t) {
        if (op.direction ==
            (tensors[t].is_result ? Direction::kForward : Direction::kBackward))
          continue;
        FactorAxes own = MovingAxes(op, projections[t].factors[f]);
        if (own.axes.empty()) continue;
        Merge({claim.factor, std::move(own), 0,
               BytesOf(graph_.values[tensors[t].value]), static_cast<int>(t),
               false},
              claim);
      }
      AddByPriority(std::move(claim), claims);
    }
    std::sort(claims.begin(), claims.end(), [](const Claim& a, const Claim& b) {
      return std::make_tuple(a.priority, -a.bytes, a.tensor, a.factor) <
             std::make_tuple(b.priority, -b.bytes, b.tensor, b.factor);
    });
    return claims;
  }

  // Returns the axes before the first axis that may not travel through the
  // operation in this round.
  FactorAxes MovingAxes(const Op& op, const FactorAxes& own) const {
    std::vector<AxisRef> axes = BeforeBarred(own.axes, op.barred);
    axes.erase(
        std::find_if(axes.begin(), axes.end(),
                     [this](const AxisRef& axis) { return !Moves(axis); }),
        axes.end());
    if (axes.size() == own.axes.size()) return own;
    return {std::move(axes), 0, own.exact};
  }

  static void AddByPriority(Claim claim, std::vector<Claim>& claims) {
    const std::vector<AxisRef> all = claim.axes.axes;
    int level = all.empty() ? 0 : all[0].priority;
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i].priority <= level) continue;
      Claim sooner = claim;
      sooner.axes = {{all.begin(), all.begin() + i}, 0, claim.axes.exact};
      sooner.priority = level;
      claims.push_back(std::move(sooner));
      level = all[i].priority;
    }
    claim.priority = level;
    if (!all.empty()) claims.push_back(std::move(claim));
  }

  // Merges two claims. The result is the longer list if one is a prefix of the
  // other. Where they diverge, the axis with the lower priority number wins; at
  // equal priority, the result is the common prefix.
  static void Merge(Claim other, Claim& claim) {
    if (claim.axes.axes.empty() && !claim.contested) {
      claim = std::move(other);
      return;
    }
    AxesMatch match = MatchAxes(claim.axes.axes, other.axes.axes);
    if (match.Conflict()) {
      const int kept = match.rest_a[0].priority;
      const int wanted = match.rest_b[0].priority;
      if (wanted < kept) {
        claim = std::move(other);
      } else if (wanted == kept) {
        claim.axes = {std::move(match.common), 0, true};
        claim.contested = true;
      }
    } else if (match.rest_a.empty() && !match.rest_b.empty()) {
      if (!claim.contested) claim = std::move(other);
    } else if (match.Same() && !claim.contested && other.axes.exact &&
               (!claim.axes.exact || claim.axes.block == 0)) {
      claim.axes = std::move(other.axes);
    }
  }

  // Appends the axes of a claim that the tensor's dimension can take.
  bool Extend(const ShardingRule& rule, const OpTensor& tensor,
              const Claim& claim, TensorProjection& projection) {
    const int d = projection.dims[claim.factor];
    if (d < 0) return false;
    Sharding& sharding = shardings_[tensor.value];
    DimSharding& dim = sharding.dims[d];
    FactorAxes& own = projection.factors[claim.factor];
    if (!dim.open || !own.exact) return false;
    AxesMatch match = MatchAxes(own.axes, claim.axes.axes);
    if (!match.rest_a.empty() || match.rest_b.empty()) return false;
    std::vector<AxisRef> tail =
        BeforeBarred(Before(match.rest_b, UsedAxes(sharding)),
                     graph_.values[tensor.value].barred);
    const FactorAxes before = own;
    for (; !tail.empty(); tail.pop_back()) {
      own.axes = before.axes;
      own.axes.insert(own.axes.end(), tail.begin(), tail.end());
      own.axes = Normalize(graph_.mesh, own.axes);
      const bool all = MatchAxes(own.axes, claim.axes.axes).Same();
      own.block = all && !IsHalo(rule.factors[claim.factor].kind)
                      ? claim.axes.block
                      : 0;
      DimSharding assembled;
      if (Assemble(rule, tensor, d, projection, assembled) &&
          MatchAxes(dim.axes, assembled.axes).rest_a.empty()) {
        dim.axes = std::move(assembled.axes);
        dim.block = assembled.block;
        return true;
      }
    }
    own = before;
    return false;
  }

  bool Assemble(const ShardingRule& rule, const OpTensor& tensor, int d,
                const TensorProjection& projection, DimSharding& dim) const {
    return AssembleDim(graph_.mesh, rule, (*tensor.factors)[d],
                       graph_.values[tensor.value].shape[d], projection.factors,
                       dim) < 0;
  }

  // The even share is only a default. If it would cut through the rows of the
  // first factor of a merged dimension, the block becomes a multiple of these
  // rows.
  bool KeepRowsTogether(const ShardingRule& rule, const OpTensor& tensor,
                        TensorProjection& projection) {
    bool changed = false;
    for (size_t f = 0; f < projection.factors.size(); ++f) {
      if (projection.factors[f].exact) continue;
      const int d = projection.dims[f];
      DimSharding& dim = shardings_[tensor.value].dims[d];
      DimSharding assembled;
      if (!dim.open || dim.block != 0 || !Moves(dim) ||
          !Assemble(rule, tensor, d, projection, assembled))
        continue;
      dim.block = assembled.block;
      projection.factors[f].exact = true;
      changed = true;
    }
    return changed;
  }

  // Replaces the default block by a chosen one, if the axes agree.
  bool TakeBlock(const ShardingRule& rule, const OpTensor& tensor,
                 const Claim& claim, TensorProjection& projection) {
    const int d = projection.dims[claim.factor];
    if (d < 0 || claim.axes.block == 0 || !claim.axes.exact ||
        IsHalo(rule.factors[claim.factor].kind))
      return false;
    DimSharding& dim = shardings_[tensor.value].dims[d];
    FactorAxes& own = projection.factors[claim.factor];
    if (!dim.open || dim.block != 0 || !Moves(dim) || own.block != 0 ||
        !MatchAxes(own.axes, claim.axes.axes).Same())
      return false;
    own = claim.axes;
    DimSharding assembled;
    if (!Assemble(rule, tensor, d, projection, assembled)) return false;
    dim.block = assembled.block;
    return true;
  }

  static std::vector<AxisRef> UsedAxes(const Sharding& sharding) {
    std::vector<AxisRef> used = sharding.replicated;
    used.insert(used.end(), sharding.unreduced.begin(),
                sharding.unreduced.end());
    for (const DimSharding& dim : sharding.dims)
      used.insert(used.end(), dim.axes.begin(), dim.axes.end());
    return used;
  }

  const Graph& graph_;
  const int priority_;
  std::vector<Sharding>& shardings_;
  std::vector<Op> groups_;
  std::vector<const Op*> ops_;  // operations of the graph, then the groups
  std::vector<std::vector<int>> users_;
  std::map<int, std::deque<int>> queues_;  // per round
  std::vector<char> queued_;
};

}  // namespace

void Propagate(const Graph& graph, int priority,
               std::vector<Sharding>& shardings) {
  Propagator(graph, priority, shardings).Run();
}

}  // namespace partita::core
