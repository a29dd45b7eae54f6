// Decides how one operation is computed: the axes of its factors, from the
// shardings of its operands and results.
//
// Every tensor that holds a factor wishes to keep its sharding. Wishes are
// merged per factor. The first axis that two factors claim is removed from the
// wishes of the weaker one, and merging starts again. This ends when no axis is
// contested and every tensor can express its factors.
#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "compiler/core/expert_exchange.h"
#include "compiler/core/projection.h"
#include "compiler/core/propagate.h"

namespace partita::core {
namespace {

bool Divides(FactorKind kind) {
  return kind == FactorKind::kCarried || IsReduced(kind) || IsHalo(kind);
}

// One tensor's wish for one factor.
struct Wish {
  int tensor = 0;
  FactorAxes wanted;          // as annotated
  std::vector<AxisRef> axes;  // `wanted` without lost axes
  int64_t bytes = 0;
};

// An axis that a factor claims.
struct Claim {
  int factor = 0;
  AxisRef axis;
  int priority = 0;
  int64_t bytes = 0;   // of all tensors with the same wish
  int tensor = 0;      // first of these tensors
  bool keeps = false;  // wins against any that does not

  auto Rank() const {
    return std::make_tuple(!keeps, priority, -bytes, tensor, factor);
  }
};

class Resolver {
 public:
  Resolver(const Graph& graph, int op, const std::vector<Sharding>& shardings,
           bool decompose)
      : graph_(graph),
        index_(op),
        op_(graph.ops[op]),
        shardings_(shardings),
        decompose_(decompose),
        tensors_(TensorsOf(op_)),
        wishes_(op_.rule.factors.size()),
        factors_(op_.rule.factors.size()) {}

  OpSharding Run() {
    PassPartialSums();
    CollectWishes();
    while (!Settle()) {
    }
    for (size_t f = 0; f < wishes_.size(); ++f)
      MergeWishes(static_cast<int>(f), /*final=*/true);
    ChooseBlocks();
    FitDims();
    return Build();
  }

 private:
  const Sharding& ShardingOf(int tensor) const {
    return shardings_[tensors_[tensor].value];
  }

  // Lets partial sums pass if all linear operands are zero or partial over the
  // same axes and no other operand uses these.
  void PassPartialSums() {
    const std::vector<AxisRef>* found = nullptr;
    for (int operand : op_.rule.linear) {
      const int value = op_.operands[operand];
      if (graph_.values[value].is_zero) continue;
      if (found && *found != shardings_[value].unreduced) return;
      found = &shardings_[value].unreduced;
    }
    if (found == nullptr) return;
    const std::vector<AxisRef> axes = *found;
    for (int value : op_.operands) {
      if (graph_.values[value].is_zero) continue;
      for (const DimSharding& dim : shardings_[value].dims)
        for (const AxisRef& ref : dim.axes)
          if (OverlapAny(ref, axes)) return;
    }
    partial_ = axes;
  }

  // The sharding that a tensor wishes to have in this operation.
  Sharding WishedSharding(const OpTensor& tensor) {
    const Sharding& has = shardings_[tensor.value];
    if (op_.attention != LongAttention::kUlysses) return has;
    const int from = DimOf(tensor, op_.rule.attention->queries),
              to = DimOf(tensor, op_.rule.attention->heads);
    if (from < 0 || has.dims[from].axes.empty()) return has;
    Sharding wished = has;
    DimSharding& left = wished.dims[from];
    if (to >= 0) {
      DimSharding& taken = wished.dims[to];
      taken.axes.insert(taken.axes.end(), left.axes.begin(), left.axes.end());
      taken.block = 0;
    }
    if (!tensor.is_result)
      Note(
          ConflictKind::kToHeads, {},
          {op_.rule.attention->queries, tensor.index, left.axes[0], left.axes});
    left.axes.clear();
    left.block = 0;
    return wished;
  }

  static int DimOf(const OpTensor& tensor, int factor) {
    for (size_t d = 0; d < tensor.factors->size(); ++d) {
      const DimFactors& factors = (*tensor.factors)[d];
      if (std::count(factors.begin(), factors.end(), factor) > 0)
        return static_cast<int>(d);
    }
    return -1;
  }

  void CollectWishes() {
    for (size_t t = 0; t < tensors_.size(); ++t) {
      const OpTensor& tensor = tensors_[t];
      const Value& value = graph_.values[tensor.value];
      TensorProjection projection = ProjectTensor(
          op_.rule, *tensor.factors, value.shape, WishedSharding(tensor));
      for (size_t f = 0; f < wishes_.size(); ++f) {
        FactorAxes& own = projection.factors[f];
        if (own.axes.empty()) continue;
        const bool is_share = tensor.is_result && op_.takes_shares;
        Wish wish{static_cast<int>(t), own,
                  is_share ? own.axes : Before(own.axes, partial_),
                  BytesOf(value)};
        LeaveOutBarred(static_cast<int>(f), wish);
        if (wish.axes.empty()) continue;
        const FactorKind kind = op_.rule.factors[f].kind;
        // The result of a composite may be sliced; only its operands constrain
        // it.
        if (!Divides(kind) && tensor.is_result) continue;
        if (!Divides(kind) && (kind != FactorKind::kDecompose || !decompose_)) {
          Refuse(static_cast<int>(f), wish);
          continue;
        }
        wishes_[f].push_back(std::move(wish));
      }
    }
  }

  void LeaveOutBarred(int factor, Wish& wish) {
    std::vector<AxisRef> axes = BeforeBarred(wish.axes, op_.barred);
    if (axes.size() == wish.axes.size()) return;
    Note(ConflictKind::kOutOfScope, {},
         {factor, wish.tensor, wish.axes[axes.size()], wish.axes});
    wish.axes = std::move(axes);
  }

  void Refuse(int factor, const Wish& wish) {
    const bool whole = op_.rule.factors[factor].kind == FactorKind::kWhole;
    Note(whole ? ConflictKind::kWhole : ConflictKind::kComposite, {},
         {factor, wish.tensor, wish.axes[0], wish.axes});
  }

  void Note(ConflictKind kind, Contender kept, Contender lost) {
    conflicts_.push_back({kind, index_, std::move(kept), std::move(lost)});
  }

  // Removes the first contested axis from the losing factor. Returns true if no
  // axis is contested.
  bool Settle() {
    std::vector<Claim> claims;
    for (size_t f = 0; f < wishes_.size(); ++f) {
      std::vector<Claim> own =
          MergeWishes(static_cast<int>(f), /*final=*/false);
      claims.insert(claims.end(), own.begin(), own.end());
    }
    std::sort(claims.begin(), claims.end(), [](const Claim& a, const Claim& b) {
      return a.Rank() < b.Rank();
    });
    for (size_t i = 0; i < claims.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        if (claims[i].factor != claims[j].factor &&
            Overlap(claims[i].axis, claims[j].axis) &&
            !ShareAxes(op_, claims[i].factor, claims[j].factor)) {
          Lose(claims[j], claims[i]);
          return false;
        }
    return true;
  }

  void Lose(const Claim& kept, const Claim& lost) {
    const auto contender = [](const Claim& claim) {
      return Contender{
          claim.factor, claim.tensor, claim.axis, {claim.axis}, claim.bytes};
    };
    Note(ConflictKind::kContested, contender(kept), contender(lost));
    for (Wish& wish : wishes_[lost.factor])
      wish.axes = Before(wish.axes, {lost.axis});
  }

  // Merges the wishes for one factor, axis by axis. Each axis comes from the
  // strongest wish that agrees with the axes so far. If `final`, records the
  // wishes that disagree.
  std::vector<Claim> MergeWishes(int factor, bool final) {
    const std::vector<Wish>& wishes = wishes_[factor];
    std::vector<AxisRef> axes;
    std::vector<Claim> claims;
    std::vector<const Wish*> givers;  // per claim
    for (;;) {
      const Wish* best = nullptr;
      AxisRef next;
      std::tuple<int, int64_t> best_rank;
      for (const Wish& wish : wishes) {
        const AxesMatch match = MatchAxes(axes, wish.axes);
        if (!match.rest_a.empty() || match.rest_b.empty()) continue;
        const std::tuple<int, int64_t> rank(match.rest_b[0].priority,
                                            -WeightOf(wish, wishes));
        if (best != nullptr && best_rank <= rank) continue;
        best = &wish;
        best_rank = rank;
        next = match.rest_b[0];
      }
      if (best == nullptr) break;
      axes.push_back(next);
      claims.push_back({factor, next, next.priority, 0, best->tensor,
                        op_.rule.factors[factor].keeps_axes &&
                            next.priority < graph_.storage_priority});
      givers.push_back(best);
    }
    for (Claim& claim : claims)
      for (const Wish& wish : wishes)
        if (OverlapAny(claim.axis, wish.axes)) claim.bytes += wish.bytes;
    if (final) NoteDisagreements(factor, axes, claims, givers);
    factors_[factor].axes = Normalize(graph_.mesh, axes);
    return claims;
  }

  // Returns the total bytes of all tensors with this wish.
  static int64_t WeightOf(const Wish& wish, const std::vector<Wish>& wishes) {
    int64_t bytes = 0;
    for (const Wish& other : wishes)
      if (other.axes == wish.axes) bytes += other.bytes;
    return bytes;
  }

  void NoteDisagreements(int factor, const std::vector<AxisRef>& axes,
                         const std::vector<Claim>& claims,
                         const std::vector<const Wish*>& givers) {
    for (const Wish& lost : wishes_[factor]) {
      const AxesMatch match = MatchAxes(axes, lost.axes);
      if (!match.Conflict()) continue;
      // Find the claim at which the two lists diverge.
      size_t at = 0;
      while (at + 1 < claims.size() &&
             !Overlap(claims[at].axis, match.rest_a[0]))
        ++at;
      const Wish& kept = *givers[at];
      Note(ConflictKind::kDisagreement,
           {factor, kept.tensor, match.rest_a[0], kept.axes},
           {factor, lost.tensor, match.rest_b[0], lost.axes});
    }
  }

  // Takes the rows per shard from the strongest tensor with exactly these axes.
  void ChooseBlocks() {
    for (size_t f = 0; f < wishes_.size(); ++f) {
      DimSharding& dim = factors_[f];
      dim.block = 0;
      if (IsHalo(op_.rule.factors[f].kind)) continue;
      const Wish* best = nullptr;
      const auto rank = [this](const Wish& wish) {
        return std::make_tuple(!wish.wanted.exact, wish.wanted.axes[0].priority,
                               !tensors_[wish.tensor].is_result, wish.tensor);
      };
      for (const Wish& wish : wishes_[f])
        if (MatchAxes(wish.wanted.axes, dim.axes).Same() &&
            (best == nullptr || rank(wish) < rank(*best)))
          best = &wish;
      if (best != nullptr) dim.block = best->wanted.block;
    }
  }

  std::vector<FactorAxes> FactorList() const {
    std::vector<FactorAxes> list(factors_.size());
    for (size_t f = 0; f < factors_.size(); ++f)
      list[f] = {factors_[f].axes, factors_[f].block, true};
    return list;
  }

  // Shortens factors' axes until every dimension can express its factors.
  void FitDims() {
    for (bool again = true; again;) {
      again = false;
      const std::vector<FactorAxes> list = FactorList();
      for (size_t t = 0; t < tensors_.size() && !again; ++t) {
        const TensorFactors& factors = *tensors_[t].factors;
        for (size_t d = 0; d < factors.size() && !again; ++d) {
          DimSharding dim;
          const int culprit =
              AssembleDim(graph_.mesh, op_.rule, factors[d],
                          graph_.values[tensors_[t].value].shape[d], list, dim);
          if (culprit < 0) continue;
          again = true;
          Shorten(culprit, static_cast<int>(t));
        }
      }
    }
  }

  void Shorten(int culprit, int tensor) {
    DimSharding& factor = factors_[culprit];
    Note(ConflictKind::kInexpressible, {},
         {culprit, tensor, factor.axes.back(), factor.axes});
    factor.axes.pop_back();
    factor.block = 0;
  }

  OpSharding Build() {
    OpSharding result;
    const std::vector<FactorAxes> list = FactorList();
    for (const OpTensor& tensor : tensors_) {
      const std::vector<int64_t>& shape = graph_.values[tensor.value].shape;
      Sharding sharding = Replicated(static_cast<int>(shape.size()));
      for (size_t d = 0; d < tensor.factors->size(); ++d)
        AssembleDim(graph_.mesh, op_.rule, (*tensor.factors)[d], shape[d], list,
                    sharding.dims[d]);
      if (tensor.is_result) {
        sharding.unreduced = UnreducedOf(tensor.index, sharding.dims);
      } else if (std::count(op_.rule.linear.begin(), op_.rule.linear.end(),
                            tensor.index) > 0) {
        sharding.unreduced = partial_;
      }
      (tensor.is_result ? result.results : result.operands)
          .push_back(std::move(sharding));
    }
    result.factors = std::move(factors_);
    result.conflicts = std::move(conflicts_);
    return result;
  }

  // Returns the axes over which a result with these dimensions is a partial
  // sum. Where rows travel, an axis that divides the result is none of them:
  // the rows' devices have the whole sums, and the experts' devices all rows.
  // Shares are rows, and sums of rows are the devices' own values.
  std::vector<AxisRef> UnreducedOf(int result,
                                   const std::vector<DimSharding>& dims) const {
    if (op_.takes_shares) return {};
    std::vector<AxisRef> unreduced = partial_;
    for (size_t f = 0; f < factors_.size(); ++f)
      if (IsPartial(op_.rule, static_cast<int>(f), result))
        unreduced.insert(unreduced.end(), factors_[f].axes.begin(),
                         factors_[f].axes.end());
    if (op_.rows.way == ExpertExchange::kRows)
      for (const DimSharding& dim : dims)
        unreduced.erase(std::remove_if(unreduced.begin(), unreduced.end(),
                                       [&](const AxisRef& axis) {
                                         return OverlapAny(axis, dim.axes);
                                       }),
                        unreduced.end());
    std::sort(unreduced.begin(), unreduced.end(),
              [](const AxisRef& a, const AxisRef& b) {
                return std::tie(a.axis, a.pre) < std::tie(b.axis, b.pre);
              });
    return Normalize(graph_.mesh, unreduced);
  }

  const Graph& graph_;
  const int index_;
  const Op& op_;
  const std::vector<Sharding>& shardings_;
  const bool decompose_;  // kDecompose factors may be divided
  const std::vector<OpTensor> tensors_;
  std::vector<std::vector<Wish>> wishes_;  // per factor, operands first
  std::vector<DimSharding> factors_;
  std::vector<AxisRef> partial_;  // partial sums that pass through
  std::vector<Conflict> conflicts_;
};

}  // namespace

OpSharding Resolve(const Graph& graph, int op,
                   const std::vector<Sharding>& shardings) {
  return Resolver(graph, op, shardings, false).Run();
}

std::vector<AxisRef> AxesNeedingDecomposition(
    const Graph& graph, int op, const std::vector<Sharding>& shardings) {
  const std::vector<Factor>& factors = graph.ops[op].rule.factors;
  const auto composite = [](const Factor& factor) {
    return factor.kind == FactorKind::kDecompose;
  };
  if (std::none_of(factors.begin(), factors.end(), composite)) return {};
  const OpSharding resolved = Resolver(graph, op, shardings, true).Run();
  std::vector<AxisRef> axes;
  for (size_t f = 0; f < factors.size(); ++f)
    if (composite(factors[f]))
      axes.insert(axes.end(), resolved.factors[f].axes.begin(),
                  resolved.factors[f].axes.end());
  return axes;
}

}  // namespace partita::core
