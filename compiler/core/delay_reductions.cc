// Starts with every value that could be partial, then removes values until the
// rest is consistent.
#include "compiler/core/delay_reductions.h"

#include <algorithm>
#include <map>

#include "compiler/core/projection.h"

namespace partita::core {
namespace {

class Delay {
 public:
  Delay(const Graph& graph, std::vector<Sharding>& shardings)
      : graph_(graph), shardings_(shardings), uses_(graph.values.size()) {
    for (size_t op = 0; op < graph.ops.size(); ++op)
      for (int operand : graph.ops[op].operands)
        if (std::vector<int>& uses = uses_[operand];
            uses.empty() || uses.back() != static_cast<int>(op))
          uses.push_back(static_cast<int>(op));
  }

  void Run() {
    Collect();
    while (Spread()) {
    }
    while (Prune()) {
    }
    for (const auto& [value, partial] : partial_) {
      const Axes& axes = partial.axes;
      Sharding& sharding = shardings_[value];
      for (DimSharding& dim : sharding.dims)
        if (HoldsAny(dim, axes)) RemoveAxes(dim, axes);
      CanonicalizeBlocks(graph_.values[value].shape, sharding);
      sharding.unreduced = axes;
    }
  }

 private:
  using Axes = std::vector<AxisRef>;
  struct Partial {
    Axes axes;
    int passed_by;  // operation that passes it on; -1: its own op is partial
  };

  static bool HoldsAny(const DimSharding& dim, const Axes& axes) {
    return std::any_of(
        dim.axes.begin(), dim.axes.end(),
        [&](const AxisRef& ref) { return OverlapAny(ref, axes); });
  }

  static void RemoveAxes(DimSharding& dim, const Axes& axes) {
    dim.axes.erase(std::remove_if(dim.axes.begin(), dim.axes.end(),
                                  [&](const AxisRef& ref) {
                                    return OverlapAny(ref, axes);
                                  }),
                   dim.axes.end());
    dim.block = 0;
  }

  // A value may be divided over more axes than its partial sums. It may then
  // need another block without the latter. It can be partial only if its shards
  // are whole blocks.
  bool CanBePartial(int value, const Axes& axes) const {
    for (size_t i = 0; i < shardings_[value].dims.size(); ++i) {
      const DimSharding& dim = shardings_[value].dims[i];
      if (!HoldsAny(dim, axes)) continue;
      if (!dim.open) return false;
      size_t kept = 0;
      while (!OverlapAny(dim.axes[kept], axes)) ++kept;
      for (size_t j = kept; j < dim.axes.size(); ++j)
        if (!OverlapAny(dim.axes[j], axes)) return false;
      if (kept > 0 && (dim.block != 0 ||
                       graph_.values[value].shape[i] % SizeOf(dim.axes) != 0))
        return false;
    }
    return true;
  }

  // False if no result of the operation can be partial: it reads no partial
  // sum, and no tensor is divided along a reduced factor.
  bool MayMakePartial(const Op& op) const {
    for (int value : op.operands)
      if (!shardings_[value].unreduced.empty()) return true;
    for (const OpTensor& tensor : TensorsOf(op))
      for (size_t d = 0; d < tensor.factors->size(); ++d) {
        if (shardings_[tensor.value].dims[d].axes.empty()) continue;
        for (int factor : (*tensor.factors)[d])
          if (IsPartialInSome(op.rule, factor)) return true;
      }
    return false;
  }

  // Collects values that their own operation makes partial.
  void Collect() {
    for (size_t op = 0; op < graph_.ops.size(); ++op) {
      if (!MayMakePartial(graph_.ops[op])) continue;
      const std::vector<Factor>& factors = graph_.ops[op].rule.factors;
      if (std::any_of(factors.begin(), factors.end(), [](const Factor& factor) {
            return IsReduced(factor.kind) &&
                   factor.reduction != Reduction::kSum;
          }))
        continue;
      const OpSharding resolved =
          Resolve(graph_, static_cast<int>(op), shardings_);
      for (size_t i = 0; i < resolved.results.size(); ++i)
        Add(graph_.ops[op].results[i], {resolved.results[i].unreduced, -1});
    }
  }

  bool Add(int value, const Partial& partial) {
    if (partial.axes.empty() || !shardings_[value].unreduced.empty() ||
        !CanBePartial(value, partial.axes))
      return false;
    return partial_.emplace(value, partial).second;
  }

  // Returns null unless the operation passes partial sums on.
  const Axes* Passes(const Op& op) const {
    if (op.rule.linear.empty()) return nullptr;
    const Axes* axes = nullptr;
    for (int index : op.rule.linear) {
      if (graph_.values[op.operands[index]].is_zero) continue;
      auto found = partial_.find(op.operands[index]);
      if (found == partial_.end() || (axes && *axes != found->second.axes))
        return nullptr;
      axes = &found->second.axes;
    }
    if (axes == nullptr || (op.takes_shares && !AreShares(op, *axes)))
      return nullptr;
    for (size_t i = 0; i < op.operands.size(); ++i) {
      if (IsLinear(op, i)) continue;
      for (const DimSharding& dim : shardings_[op.operands[i]].dims)
        if (HoldsAny(dim, *axes)) return nullptr;
    }
    return axes;
  }

  bool AreShares(const Op& op, const Axes& axes) const {
    const Axes& rows = shardings_[op.results[0]].dims[0].axes;
    return rows.size() == axes.size() &&
           std::is_permutation(rows.begin(), rows.end(), axes.begin());
  }

  static bool IsLinear(const Op& op, size_t operand) {
    return std::count(op.rule.linear.begin(), op.rule.linear.end(),
                      static_cast<int>(operand)) > 0;
  }

  bool Spread() {
    bool changed = false;
    for (size_t index = 0; index < graph_.ops.size(); ++index) {
      const Op& op = graph_.ops[index];
      const Axes* axes = Passes(op);
      if (axes == nullptr || op.results.size() != 1 || op.takes_shares)
        continue;
      changed |= Add(op.results[0], {*axes, static_cast<int>(index)});
    }
    return changed;
  }

  // True if the value is partial and every device takes its own share of it,
  // perhaps after operations that pass partial sums on.
  bool IsNeverReduced(int value) const {
    // Ends after all operations, since a loop's results are its operands again.
    for (size_t steps = 0; steps < graph_.ops.size(); ++steps) {
      if (partial_.count(value) == 0 || uses_[value].size() != 1) return false;
      const Op& op = graph_.ops[uses_[value].front()];
      if (Passes(op) == nullptr) return false;
      if (op.takes_shares) return true;
      if (op.results.size() != 1) return false;
      value = op.results.front();
    }
    return false;
  }

  // Returns the bytes of a result per linear operand, or 0 if the result is
  // never reduced. A gradient that is widened only to be added to the gradients
  // of other microbatches counts as a share of their sum.
  int64_t ShareOf(const Op& op, int result) const {
    const auto share_of = [&](const Op& sum, int of) {
      return BytesOf(graph_.values[of]) /
             static_cast<int64_t>(sum.rule.linear.size());
    };
    if (IsNeverReduced(result)) return 0;
    const int64_t share = share_of(op, result);
    if (op.is_tie || op.rule.linear.size() > 1 || uses_[result].size() != 1)
      return share;
    const Op& next = graph_.ops[uses_[result].front()];
    if (next.is_tie || next.rule.linear.size() < 2 ||
        next.results.size() != 1 || Passes(next) == nullptr)
      return share;
    return std::min(share, share_of(next, next.results.front()));
  }

  bool ReadersPass(int value) const {
    int64_t bytes = 0, most_tied = 0;
    for (int use : uses_[value]) {
      const Op& op = graph_.ops[use];
      if (Passes(op) == nullptr) return false;
      for (size_t i = 0; i < op.operands.size(); ++i)
        if (op.operands[i] == value && !IsLinear(op, i)) return false;
      if (op.takes_shares) continue;
      for (int result : op.results) {
        const int64_t share = ShareOf(op, result);
        // Only one caller at a time reads a function's result.
        if (op.is_tie)
          most_tied = std::max(most_tied, share);
        else
          bytes += share;
      }
    }
    return !uses_[value].empty() &&
           bytes + most_tied <= BytesOf(graph_.values[value]);
  }

  bool Stays(int value, const Partial& partial) const {
    return (partial.passed_by < 0 ||
            Passes(graph_.ops[partial.passed_by]) != nullptr) &&
           ReadersPass(value);
  }

  bool Prune() {
    const size_t before = partial_.size();
    for (auto entry = partial_.begin(); entry != partial_.end();)
      entry = Stays(entry->first, entry->second) ? std::next(entry)
                                                 : partial_.erase(entry);
    return partial_.size() < before;
  }

  const Graph& graph_;
  std::vector<Sharding>& shardings_;
  std::vector<std::vector<int>> uses_;
  std::map<int, Partial> partial_;
};

}  // namespace

void DelayReductions(const Graph& graph, std::vector<Sharding>& shardings) {
  Delay(graph, shardings).Run();
}

}  // namespace partita::core
