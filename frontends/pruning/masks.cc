// Sorts magnitudes, and searches orders by exchanging elements of groups.
#include "frontends/pruning/masks.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "runtime/base/smallest.h"

namespace partita::pruning {
namespace {

// Longer lines are reordered by exchanges only.
constexpr int64_t kExactLength = 8;
// An exchange must gain this share of all magnitudes, so that rounding cannot
// repeat exchanges forever.
constexpr double kLeastGain = 1e-12;

// The sum of the two largest of four magnitudes, over all lines.
double twoOfFour(const std::vector<float>& a, const std::vector<float>& b,
                 const std::vector<float>& c, const std::vector<float>& d) {
  constexpr size_t kLanes = 16, kBlock = 64 * kLanes;
  double sum = 0;
  for (size_t begin = 0; begin < a.size(); begin += kBlock) {
    const size_t end = std::min(begin + kBlock, a.size());
    float lanes[kLanes] = {};
    for (size_t i = begin; i < end; i += kLanes)
      for (size_t lane = 0; lane < std::min(kLanes, end - i); ++lane) {
        const size_t k = i + lane;
        const float high = std::max(a[k], b[k]), low = std::min(a[k], b[k]);
        const float other_high = std::max(c[k], d[k]),
                    other_low = std::min(c[k], d[k]);
        lanes[lane] +=
            std::max(high, other_high) +
            std::max(std::min(high, other_high), std::max(low, other_low));
      }
    for (const float lane : lanes) sum += lane;
  }
  return sum;
}

class Orders {
 public:
  Orders(const Lines& weight, int64_t keep, int64_t group)
      : length_(weight.length),
        keep_(keep),
        group_(group),
        magnitudes_(weight.length),
        scratch_(group) {
    for (int64_t i = 0; i < length_; ++i)
      for (int64_t line = 0; line < weight.count(); ++line)
        magnitudes_[i].push_back(std::abs(weight.at(line, i)));
  }

  // The magnitudes kept of the group that starts at `members`.
  double kept(const int64_t* members) {
    const auto of = [&](int64_t i) -> const std::vector<float>& {
      return magnitudes_[members[i]];
    };
    if (keep_ == 2 && group_ == 4) return twoOfFour(of(0), of(1), of(2), of(3));
    double sum = 0;
    for (size_t line = 0; line < of(0).size(); ++line) {
      for (int64_t i = 0; i < group_; ++i) scratch_[i] = of(i)[line];
      std::nth_element(scratch_.begin(), scratch_.begin() + (group_ - keep_),
                       scratch_.end());
      for (int64_t i = group_ - keep_; i < group_; ++i) sum += scratch_[i];
    }
    return sum;
  }

  double keptOfAll(const std::vector<int64_t>& order) {
    double sum = 0;
    for (size_t first = 0; first < order.size(); first += group_)
      sum += kept(&order[first]);
    return sum;
  }

  // Tries all divisions into groups. The order within a group, and of groups,
  // changes nothing, so that each group begins with the smallest element left.
  std::vector<int64_t> exact() {
    std::vector<int64_t> order;
    std::vector<bool> used(length_);
    best_ = -1;
    place(order, used, 0);
    return best_order_;
  }

  // Takes the best exchange of two elements of two groups, until none gains.
  std::vector<int64_t> greedy() {
    std::vector<int64_t> order(length_);
    std::iota(order.begin(), order.end(), int64_t{0});
    const int64_t groups = length_ / group_;
    std::vector<double> sums(groups);
    double total = 0;
    for (int64_t g = 0; g < groups; ++g)
      total += sums[g] = kept(&order[g * group_]);
    const double least = kLeastGain * (total + 1);
    // Groups that changed since they were compared with all others.
    std::vector<bool> changed(groups, true);
    while (std::find(changed.begin(), changed.end(), true) != changed.end()) {
      std::vector<bool> next(groups, false);
      for (int64_t a = 0; a < groups; ++a)
        for (int64_t b = a + 1; b < groups; ++b)
          if ((changed[a] || changed[b] || next[a] || next[b]) &&
              exchange(order, sums, a, b, least))
            next[a] = next[b] = true;
      changed = next;
    }
    return order;
  }

 private:
  void place(std::vector<int64_t>& order, std::vector<bool>& used, double sum) {
    if (static_cast<int64_t>(order.size()) == length_) {
      if (sum <= best_) return;
      best_ = sum;
      best_order_ = order;
      return;
    }
    const auto position = static_cast<int64_t>(order.size()) % group_;
    for (int64_t i = position == 0 ? 0 : order.back() + 1; i < length_; ++i) {
      if (used[i]) continue;
      used[i] = true;
      order.push_back(i);
      const bool is_full = position == group_ - 1;
      place(order, used,
            sum + (is_full ? kept(&order[order.size() - group_]) : 0));
      order.pop_back();
      used[i] = false;
      if (position == 0) break;
    }
  }

  bool exchange(std::vector<int64_t>& order, std::vector<double>& sums,
                int64_t a, int64_t b, double least) {
    double best = sums[a] + sums[b] + least;
    std::pair<int64_t, int64_t> found = {-1, -1};
    for (int64_t i = a * group_; i < (a + 1) * group_; ++i)
      for (int64_t j = b * group_; j < (b + 1) * group_; ++j) {
        std::swap(order[i], order[j]);
        const double sum = kept(&order[a * group_]) + kept(&order[b * group_]);
        std::swap(order[i], order[j]);
        if (sum <= best) continue;
        best = sum;
        found = {i, j};
      }
    if (found.first < 0) return false;
    std::swap(order[found.first], order[found.second]);
    sums[a] = kept(&order[a * group_]);
    sums[b] = kept(&order[b * group_]);
    return true;
  }

  const int64_t length_, keep_, group_;
  std::vector<std::vector<float>> magnitudes_;  // by element of a line
  std::vector<float> scratch_;
  double best_ = -1;
  std::vector<int64_t> best_order_;
};

}  // namespace

void pruneSmallest(const std::vector<Lines*>& weights, double sparsity) {
  std::vector<float*> elements;
  for (Lines* weight : weights)
    for (float& value : weight->values) elements.push_back(&value);
  base::ZeroSmallest(elements, sparsity);
}

void pruneGroups(Lines& weight, int64_t keep, int64_t group) {
  std::vector<int64_t> members(group);
  for (int64_t line = 0; line < weight.count(); ++line)
    for (int64_t first = 0; first < weight.length; first += group) {
      std::iota(members.begin(), members.end(), first);
      std::sort(members.begin(), members.end(), [&](int64_t a, int64_t b) {
        const float x = std::abs(weight.at(line, a)),
                    y = std::abs(weight.at(line, b));
        return x != y ? x < y : a < b;
      });
      for (int64_t i = 0; i < group - keep; ++i)
        weight.at(line, members[i]) = 0;
    }
}

double keptMagnitude(const Lines& weight, const std::vector<int64_t>& order,
                     int64_t keep, int64_t group) {
  return Orders(weight, keep, group).keptOfAll(order);
}

std::vector<int64_t> bestOrder(const Lines& weight, int64_t keep,
                               int64_t group) {
  Orders orders(weight, keep, group);
  return weight.length <= kExactLength ? orders.exact() : orders.greedy();
}

}  // namespace partita::pruning
