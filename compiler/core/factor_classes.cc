// Union-find whose classes may be split in two. A class is united only with
// classes of its own size, so splitting terminates.
#include "compiler/core/factor_classes.h"

#include <algorithm>
#include <iterator>

namespace partita::core {

int FactorClasses::AddDim(int64_t size) {
  nodes_.push_back({size});
  return static_cast<int>(nodes_.size()) - 1;
}

int FactorClasses::Find(int node) const {
  while (nodes_[node].parent >= 0) {
    const int parent = nodes_[node].parent;
    if (nodes_[parent].parent >= 0) nodes_[node].parent = nodes_[parent].parent;
    node = parent;
  }
  return node;
}

void FactorClasses::Expand(int node, std::vector<int>& segments) const {
  node = Find(node);
  if (nodes_[node].major >= 0) {
    Expand(nodes_[node].major, segments);
    Expand(nodes_[node].minor, segments);
  } else if (nodes_[node].size != 1) {
    segments.push_back(node);
  }
}

std::vector<int> FactorClasses::Segments(int dim) const {
  std::vector<int> segments;
  Expand(dim, segments);
  return segments;
}

void FactorClasses::Split(int segment, int64_t major_size) {
  const int major = AddDim(major_size),
            minor = AddDim(nodes_[segment].size / major_size);
  nodes_[segment].major = major;
  nodes_[segment].minor = minor;
}

bool FactorClasses::Unify(const std::vector<int>& a,
                          const std::vector<int>& b) {
  // Segments still to align; the most significant is last.
  auto reversed = [&](const std::vector<int>& dims) {
    std::vector<int> segments;
    for (int dim : dims) Expand(dim, segments);
    return std::vector<int>(segments.rbegin(), segments.rend());
  };
  std::vector<int> left = reversed(a), right = reversed(b);
  // Earlier steps may have split segments that are still in the lists.
  auto next = [&](std::vector<int>& list) {
    std::vector<int> segments;
    Expand(list.back(), segments);
    list.pop_back();
    list.insert(list.end(), segments.rbegin(), segments.rend());
    return list.back();
  };
  while (!left.empty() && !right.empty()) {
    const int x = next(left), y = next(right);
    const int64_t x_size = nodes_[x].size, y_size = nodes_[y].size;
    if (x_size == y_size) {
      if (x != y) Union(x, y);
      left.pop_back();
      right.pop_back();
    } else if (x_size % y_size == 0) {
      Split(x, y_size);
    } else if (y_size % x_size == 0) {
      Split(y, x_size);
    } else {
      return false;
    }
  }
  return left.empty() && right.empty();
}

std::vector<std::pair<int, int>> FactorClasses::LinkedSegments() const {
  std::vector<std::pair<int, int>> pairs;
  for (const auto& [a, b] : links_) {
    const std::vector<int> left = Segments(a), right = Segments(b);
    if (left.size() != right.size()) continue;
    std::transform(left.begin(), left.end(), right.begin(),
                   std::back_inserter(pairs),
                   [](int x, int y) { return std::make_pair(x, y); });
  }
  return pairs;
}

}  // namespace partita::core
