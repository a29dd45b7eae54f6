// Searches a chain of layers. Each mapping has its own costs, and each pair of
// adjacent layers a boundary cost. A partial division is dropped if another one
// with the same last mapping beats it in every respect, or if no continuation
// can beat the best known chain.
#include "compiler/planner/layers/layers.h"

#include <algorithm>
#include <limits>
#include <map>

#include "compiler/plan/text.h"

namespace partita::planner {
namespace {

using absl::InvalidArgumentError;
using absl::StatusOr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Relative difference below which steps count as equal.
constexpr double kRounding = 1e-9;
// Upper bound on partial divisions per layer. Dropped ones show in the gap.
constexpr size_t kMostPartials = 4000;

// A division of the first layers of the model.
struct Partial {
  double time = 0;  // seconds without gradients
  double over = 0;  // gradient seconds minus hiding; may be negative
  double memory = 0;
  int before = -1;  // index of the partial division it extends
  int last = 0;     // mapping of its last layer

  double step() const { return time + std::max(0.0, over); }
};

// Pareto front of the partial divisions added so far, in order of time: the
// least memory for each `over`.
class Staircase {
 public:
  // Returns false if an earlier division is as good in both.
  bool Add(double over, double memory) {
    const auto next = steps_.upper_bound(over);
    if (next != steps_.begin() && std::prev(next)->second <= memory)
      return false;
    auto worse = steps_.lower_bound(over);
    while (worse != steps_.end() && worse->second >= memory)
      worse = steps_.erase(worse);
    steps_[over] = memory;
    return true;
  }

 private:
  std::map<double, double> steps_;  // memory falls as `over` rises
};

// Keeps divisions that no other beats in time, gradients and memory. Sorts them
// by time.
std::vector<Partial> Prune(std::vector<Partial> partials, size_t mappings) {
  std::sort(partials.begin(), partials.end(),
            [](const Partial& a, const Partial& b) { return a.time < b.time; });
  std::vector<Staircase> met(mappings);
  std::vector<Partial> kept;
  for (const Partial& partial : partials)
    if (met[partial.last].Add(partial.over, partial.memory))
      kept.push_back(partial);
  return kept;
}

// Lagrangian relaxation. A step takes max(time, time + over) seconds. So for
// any share of `over` from 0 to 1 and any price of memory, it takes at least
//   time + share * over + price * (memory - limit).
// A shortest path minimises this. It gives a lower bound and a division to try.
struct Relaxation {
  double share = 0, price = 0;
  std::vector<std::vector<double>>
      rest;                  // [layer][mapping]: cost after the layer
  double least = kInfinity;  // minimum over all chains, without the limit
  std::vector<int> chain;

  double Of(const LayerCost& cost) const {
    return cost.compute + cost.collectives +
           share * (cost.gradients - cost.hiding) + price * cost.memory;
  }
  double Bound(const Partial& partial, size_t layer, double limit) const {
    return partial.time + share * partial.over +
           price * (partial.memory - limit) + rest[layer][partial.last];
  }
};

Relaxation Relax(const LayerTable& table, double share, double price) {
  const size_t layers = table.costs.size(), mappings = table.offered.size();
  Relaxation relaxed;
  relaxed.share = share;
  relaxed.price = price;
  relaxed.rest.assign(layers, std::vector<double>(mappings, 0));
  std::vector<std::vector<int>> next(layers, std::vector<int>(mappings, 0));
  for (size_t i = layers - 1; i > 0; --i)
    for (size_t before = 0; before < mappings; ++before) {
      double& least = relaxed.rest[i - 1][before] = kInfinity;
      for (size_t m = 0; m < mappings; ++m) {
        if (!table.offered[m]) continue;
        const double cost = table.boundaries[i][before][m] +
                            relaxed.Of(table.costs[i][m]) + relaxed.rest[i][m];
        if (cost >= least) continue;
        least = cost;
        next[i - 1][before] = static_cast<int>(m);
      }
    }
  int at = 0;
  for (size_t m = 0; m < mappings; ++m) {
    if (!table.offered[m]) continue;
    const double cost = relaxed.Of(table.costs[0][m]) + relaxed.rest[0][m];
    if (cost >= relaxed.least) continue;
    relaxed.least = cost;
    at = static_cast<int>(m);
  }
  for (size_t i = 0; i < layers; at = next[i++][at])
    relaxed.chain.push_back(at);
  return relaxed;
}

// Finds the fastest chain of a table within the memory limit.
class ChainSearch {
 public:
  ChainSearch(const LayerTable& table, double limit)
      : table_(table), limit_(limit) {}

  // Returns false if nothing fits.
  bool Run() {
    for (double share : {0.0, 0.25, 0.5, 0.75, 1.0}) TryShare(share);
    Enumerate();
    return !best_.empty();
  }

  const std::vector<int>& best() const { return best_; }
  // Lower bound on the step of every chain.
  double bound() const { return is_cut_ ? std::min(bound_, step_) : step_; }

 private:
  void TryShare(double share) {
    if (Try(Relax(table_, share, 0))) return;
    // Raise the price of memory until the cheapest chain fits, then bisect.
    double low = 0, high = 1e-12;  // seconds per byte
    while (high < 1e6 && !Try(Relax(table_, share, high)))
      low = high, high *= 8;
    for (int i = 0; i < 12; ++i) {
      const double middle = (low + high) / 2;
      (Try(Relax(table_, share, middle)) ? high : low) = middle;
    }
  }

  // Returns true if the relaxation's chain fits.
  bool Try(Relaxation relaxed) {
    Partial sum;
    for (size_t i = 0; i < relaxed.chain.size(); ++i)
      sum = Extended(sum, i, relaxed.chain[i]);
    const bool fits = sum.memory <= limit_;
    if (fits && sum.step() < step_) {
      step_ = sum.step();
      best_ = relaxed.chain;
    }
    bound_ = std::max(bound_, relaxed.least - relaxed.price * limit_);
    relaxations_.push_back(std::move(relaxed));
    return fits;
  }

  Partial Extended(Partial partial, size_t layer, int mapping) const {
    const LayerCost& own = table_.costs[layer][mapping];
    partial.time += own.compute + own.collectives;
    if (layer > 0)
      partial.time += table_.boundaries[layer][partial.last][mapping];
    partial.over += own.gradients - own.hiding;
    partial.memory += own.memory;
    partial.last = mapping;
    return partial;
  }

  // True if some continuation may beat the best known chain.
  bool MayWin(const Partial& partial, size_t layer) const {
    return partial.memory <= limit_ &&
           std::all_of(relaxations_.begin(), relaxations_.end(),
                       [&](const Relaxation& relaxed) {
                         return relaxed.Bound(partial, layer, limit_) <
                                step_ * (1 - kRounding);
                       });
  }

  void Enumerate() {
    std::vector<std::vector<Partial>> reached = {{Partial()}};
    for (size_t i = 0; i < table_.costs.size(); ++i) {
      std::vector<Partial> next;
      for (size_t m = 0; m < table_.offered.size(); ++m)
        for (size_t b = 0; table_.offered[m] && b < reached[i].size(); ++b) {
          Partial partial = Extended(reached[i][b], i, static_cast<int>(m));
          partial.before = static_cast<int>(b);
          if (MayWin(partial, i)) next.push_back(partial);
        }
      reached.push_back(Prune(std::move(next), table_.offered.size()));
      if (reached.back().size() > kMostPartials) {
        reached.back().resize(kMostPartials);
        is_cut_ = true;
      }
    }
    for (const Partial& end : reached.back())
      if (end.step() < step_) {
        step_ = end.step();
        best_ = ChainTo(reached, end);
      }
  }

  static std::vector<int> ChainTo(
      const std::vector<std::vector<Partial>>& reached, const Partial& end) {
    std::vector<int> chain(reached.size() - 1);
    const Partial* at = &end;
    for (size_t i = chain.size(); i > 0; --i) {
      chain[i - 1] = at->last;
      at = &reached[i - 1][at->before];
    }
    return chain;
  }

  const LayerTable& table_;
  const double limit_;
  std::vector<Relaxation> relaxations_;
  std::vector<int> best_;
  double step_ = kInfinity;    // of the best chain
  double bound_ = -kInfinity;  // lower bound from the relaxations
  bool is_cut_ = false;        // partial divisions were dropped
};

// True if all rows have a cost for each mapping.
bool HasAllCosts(const LayerTable& table) {
  const size_t mappings = table.offered.size();
  if (table.boundaries.size() != table.costs.size()) return false;
  for (const auto& row : table.costs)
    if (row.size() != mappings) return false;
  for (size_t i = 1; i < table.boundaries.size(); ++i) {
    if (table.boundaries[i].size() != mappings) return false;
    for (const auto& row : table.boundaries[i])
      if (row.size() != mappings) return false;
  }
  return true;
}

absl::Status CheckTables(const std::vector<LayerTable>& tables) {
  if (tables.empty() || tables.front().costs.empty())
    return InvalidArgumentError("expected layers, found none");
  for (const LayerTable& table : tables)
    if (!HasAllCosts(table))
      return InvalidArgumentError(
          "expected costs of " + std::to_string(table.costs.size()) +
          " layers in " + std::to_string(table.offered.size()) +
          " mappings, found a table of another size");
  return absl::OkStatus();
}

// The least memory of any division, for the message about a limit.
double LeastMemory(const std::vector<LayerTable>& tables) {
  double least = kInfinity;
  for (const LayerTable& table : tables) {
    double sum = 0;
    for (const std::vector<LayerCost>& row : table.costs) {
      double own = kInfinity;
      for (size_t m = 0; m < row.size(); ++m)
        if (table.offered[m]) own = std::min(own, row[m].memory);
      sum += own;
    }
    least = std::min(least, sum);
  }
  return least;
}

void SortByStep(std::vector<LayerChoice>& choices) {
  std::sort(choices.begin(), choices.end(),
            [](const LayerChoice& a, const LayerChoice& b) {
              return a.prediction.step < b.prediction.step;
            });
}

}  // namespace

StatusOr<LayerPrediction> EvaluateLayers(const std::vector<LayerTable>& tables,
                                         const LayerDivision& division) {
  if (absl::Status status = CheckTables(tables); !status.ok()) return status;
  if (division.table < 0 || division.table >= static_cast<int>(tables.size()) ||
      division.mappings.size() != tables.front().costs.size())
    return InvalidArgumentError(
        "expected one of " + std::to_string(tables.size()) + " tables and " +
        std::to_string(tables.front().costs.size()) +
        " mappings, found table " + std::to_string(division.table) + " and " +
        std::to_string(division.mappings.size()));
  const LayerTable& table = tables[division.table];
  LayerPrediction prediction;
  double over = 0;
  for (size_t i = 0; i < table.costs.size(); ++i) {
    const int mapping = division.mappings[i];
    if (mapping < 0 || mapping >= static_cast<int>(table.offered.size()) ||
        !table.offered[mapping])
      return InvalidArgumentError("layer " + std::to_string(i) + ": mapping " +
                                  std::to_string(mapping) + " is not offered");
    const LayerCost& own = table.costs[i][mapping];
    prediction.compute += own.compute;
    prediction.collectives += own.collectives;
    prediction.memory += own.memory;
    over += own.gradients - own.hiding;
    if (i > 0)
      prediction.boundaries +=
          table.boundaries[i][division.mappings[i - 1]][mapping];
  }
  prediction.gradients = std::max(0.0, over);
  prediction.step = prediction.compute + prediction.collectives +
                    prediction.boundaries + prediction.gradients;
  return prediction;
}

StatusOr<LayerResult> SearchLayers(const std::vector<LayerTable>& tables,
                                   double memory) {
  if (absl::Status status = CheckTables(tables); !status.ok()) return status;
  LayerResult result;
  const auto add = [&](LayerDivision division,
                       std::vector<LayerChoice>& choices) {
    StatusOr<LayerPrediction> found = EvaluateLayers(tables, division);
    if (found.ok() && found->memory <= memory)
      choices.push_back({std::move(division), *found});
  };
  double bound = kInfinity;
  for (size_t t = 0; t < tables.size(); ++t) {
    const LayerTable& table = tables[t];
    ChainSearch search(table, memory);
    if (search.Run()) {
      add({static_cast<int>(t), search.best()}, result.meshes);
      bound = std::min(bound, search.bound());
    }
    for (size_t m = 0; m < table.offered.size(); ++m)
      add({static_cast<int>(t),
           std::vector<int>(table.costs.size(), static_cast<int>(m))},
          result.uniform);
  }
  if (result.meshes.empty()) {
    const double least = LeastMemory(tables);
    return absl::ResourceExhaustedError(
        "expected a division within " + plan::GigaBytes(memory) +
        " a device, found none: the least is " + plan::GigaBytes(least) + ", " +
        plan::GigaBytes(least - memory) + " more");
  }
  SortByStep(result.meshes);
  SortByStep(result.uniform);
  result.best = result.meshes.front();
  const double step = result.best.prediction.step;
  if (bound < step * (1 - kRounding)) result.gap = step / bound - 1;
  return result;
}

}  // namespace partita::planner
