// Equivalence classes of segments of dimensions.
//
// A dimension is a list of segments, most significant first. Their sizes
// multiply to the dimension's size: 32 may be 4 heads x 8. If two dimensions
// are united, their segments are aligned, and split where the other side is
// finer. A split applies to the whole class. Segments of size 1 do not exist.
#ifndef PARTITA_COMPILER_CORE_FACTOR_CLASSES_H_
#define PARTITA_COMPILER_CORE_FACTOR_CLASSES_H_

#include <cstdint>
#include <utility>
#include <vector>

namespace partita::core {

class FactorClasses {
 public:
  // Adds a dimension of one segment and returns its number. `size` is at least
  // 1.
  int AddDim(int64_t size);

  // Returns the classes of a dimension's segments. Valid until the next call of
  // Unify.
  std::vector<int> Segments(int dim) const;
  int64_t SegmentSize(int segment) const { return nodes_[segment].size; }

  // Unites the concatenated segments of `a` and `b`, pairwise from the most
  // significant. Returns false if sizes do not divide each other; the remaining
  // segments then stay separate.
  bool Unify(const std::vector<int>& a, const std::vector<int>& b);

  // Records that two dimensions have one meaning but different sizes, such as
  // the rows of an image before and after a stride. Their segments stay
  // separate.
  void Link(int a, int b) { links_.push_back({a, b}); }
  // Returns pairs of linked segments. Only dimensions with equal numbers of
  // segments are paired.
  std::vector<std::pair<int, int>> LinkedSegments() const;

 private:
  struct Node {
    int64_t size = 1;
    int parent = -1;             // -1: representative of its class
    int major = -1, minor = -1;  // parts, if the class is split
  };

  int Find(int node) const;
  void Expand(int node, std::vector<int>& segments) const;
  // Splits the class into major_size x the rest.
  void Split(int segment, int64_t major_size);
  void Union(int a, int b) { nodes_[a].parent = b; }

  mutable std::vector<Node> nodes_;
  std::vector<std::pair<int, int>> links_;
};

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_FACTOR_CLASSES_H_
