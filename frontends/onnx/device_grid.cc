// Tries each order of the device count's prime factors as the finest grid. In a
// valid grid, the shard of a position is a weighted sum of its coordinates.
// Adjacent axes that always occur together are then joined.
#include "frontends/onnx/device_grid.h"

#include <algorithm>

namespace partita::onnx {
namespace {

// Per placement and dimension: the coordinate that each device holds.
using Coordinates = std::vector<std::vector<std::vector<int64_t>>>;

std::vector<int64_t> primesOf(int64_t number) {
  std::vector<int64_t> primes;
  for (int64_t p = 2; p * p <= number; ++p)
    for (; number % p == 0; number /= p) primes.push_back(p);
  if (number > 1) primes.push_back(number);
  return primes;
}

Coordinates coordinatesOf(int64_t devices,
                          const std::vector<Placement>& placements) {
  Coordinates all;
  for (const Placement& placement : placements) {
    std::vector<std::vector<int64_t>> dims(placement.counts.size(),
                                           std::vector<int64_t>(devices));
    for (size_t shard = 0; shard < placement.holders.size(); ++shard) {
      int64_t rest = static_cast<int64_t>(shard);
      for (size_t d = dims.size(); d-- > 0; rest /= placement.counts[d])
        for (int64_t device : placement.holders[shard])
          dims[d][device] = rest % placement.counts[d];
    }
    all.push_back(std::move(dims));
  }
  return all;
}

// One order of prime factors as a grid, first axis slowest.
class Candidate {
 public:
  Candidate(const std::vector<int64_t>& digits,
            const std::vector<int64_t>& order)
      : digits_(digits), order_(order), strides_(digits.size(), 1) {
    for (size_t i = digits.size(); i-- > 1;)
      strides_[i - 1] = strides_[i] * digits_[i];
  }

  // The weights of the digits in a coordinate. Fails if the coordinate is not a
  // weighted sum, or the weights do not number the shards uniquely.
  bool weigh(const std::vector<int64_t>& coordinate, int64_t count,
             std::vector<int64_t>& weights) const {
    const auto at = [&](int64_t position) {
      return coordinate[order_.empty() ? position : order_[position]];
    };
    if (at(0) != 0) return false;
    weights.clear();
    std::vector<std::pair<int64_t, int64_t>> used;  // weight, digit
    for (size_t i = 0; i < digits_.size(); ++i) {
      weights.push_back(at(strides_[i]));
      if (weights[i] != 0) used.push_back({weights[i], digits_[i]});
    }
    std::sort(used.begin(), used.end());
    int64_t next = 1;
    for (auto [weight, digit] : used) {
      if (weight != next) return false;
      next *= digit;
    }
    if (next != count) return false;
    for (size_t p = 0; p < coordinate.size(); ++p) {
      int64_t sum = 0;
      for (size_t i = 0; i < digits_.size(); ++i)
        sum +=
            weights[i] * (static_cast<int64_t>(p) / strides_[i] % digits_[i]);
      if (sum != at(static_cast<int64_t>(p))) return false;
    }
    return true;
  }

 private:
  const std::vector<int64_t>& digits_;
  const std::vector<int64_t>& order_;
  std::vector<int64_t> strides_;
};

// The weights of all dimensions of all placements, concatenated. Fails if one
// does not fit; `culprit` is its placement.
bool weighAll(const Candidate& candidate, const Coordinates& coordinates,
              const std::vector<Placement>& placements,
              std::vector<std::vector<int64_t>>& all, size_t& culprit) {
  all.clear();
  for (size_t p = 0; p < placements.size(); ++p) {
    const size_t first = all.size();
    for (size_t d = 0; d < placements[p].counts.size(); ++d) {
      culprit = p;
      all.emplace_back();
      if (!candidate.weigh(coordinates[p][d], placements[p].counts[d],
                           all.back()))
        return false;
      for (size_t other = first; other + 1 < all.size(); ++other)
        for (size_t i = 0; i < all[other].size(); ++i)
          if (all[other][i] != 0 && all.back()[i] != 0) return false;
    }
  }
  return true;
}

// Joins the axes of a grid of prime sizes wherever all weights allow it.
Grid coarsen(const std::vector<int64_t>& digits,
             const std::vector<std::vector<int64_t>>& weights,
             const std::vector<Placement>& placements) {
  Grid grid;
  std::vector<size_t> last;  // the least significant digit of each axis
  for (size_t i = 0; i < digits.size(); ++i) {
    const bool joins =
        i > 0 && std::all_of(weights.begin(), weights.end(),
                             [&](const std::vector<int64_t>& w) {
                               return w[i - 1] == w[i] * digits[i];
                             });
    if (joins) {
      grid.sizes.back() *= digits[i];
      last.back() = i;
    } else {
      grid.sizes.push_back(digits[i]);
      last.push_back(i);
    }
  }
  size_t next = 0;
  for (const Placement& placement : placements) {
    grid.axes.emplace_back();
    for (size_t d = 0; d < placement.counts.size(); ++d) {
      const std::vector<int64_t>& w = weights[next++];
      std::vector<int> axes;
      for (size_t a = 0; a < last.size(); ++a)
        if (w[last[a]] != 0) axes.push_back(static_cast<int>(a));
      std::sort(axes.begin(), axes.end(),
                [&](int a, int b) { return w[last[a]] > w[last[b]]; });
      grid.axes.back().push_back(std::move(axes));
    }
  }
  return grid;
}

bool findInOrder(int64_t devices, const std::vector<Placement>& placements,
                 const Coordinates& coordinates,
                 const std::vector<int64_t>& order, Grid& grid,
                 size_t& culprit) {
  std::vector<int64_t> digits = primesOf(devices);
  bool found = false;
  culprit = 0;
  do {
    std::vector<std::vector<int64_t>> weights;
    size_t failed = 0;
    if (!weighAll(Candidate(digits, order), coordinates, placements, weights,
                  failed)) {
      culprit = std::max(culprit, failed);
      continue;
    }
    Grid next = coarsen(digits, weights, placements);
    if (!found || next.sizes.size() < grid.sizes.size()) grid = std::move(next);
    found = true;
  } while (std::next_permutation(digits.begin(), digits.end()));
  if (grid.sizes.empty()) grid.sizes = {1};
  grid.device_ids = order;
  return found;
}

}  // namespace

bool findGrid(int64_t devices, const std::vector<Placement>& placements,
              Grid& grid, size_t& culprit) {
  const Coordinates coordinates = coordinatesOf(devices, placements);
  if (findInOrder(devices, placements, coordinates, {}, grid, culprit))
    return true;
  for (const Placement& placement : placements) {
    if (static_cast<int64_t>(placement.holders.size()) != devices) continue;
    std::vector<int64_t> order;
    for (const std::vector<int64_t>& holder : placement.holders)
      order.push_back(holder[0]);
    size_t unused = 0;
    if (findInOrder(devices, placements, coordinates, order, grid, unused))
      return true;
  }
  return false;
}

}  // namespace partita::onnx
