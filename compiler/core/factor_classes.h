// Which dimensions of a model mean the same: classes of segments of dimensions.
//
// A dimension is a list of segments, the most significant first, whose sizes
// multiply to its own: 32 may be 4 heads x 8. Where two dimensions are found to
// be one, their segments are aligned, and split where the other side is finer;
// a split holds for the whole class. Segments of size 1 do not exist.
#ifndef PARTITA_COMPILER_CORE_FACTOR_CLASSES_H_
#define PARTITA_COMPILER_CORE_FACTOR_CLASSES_H_

#include <cstdint>
#include <utility>
#include <vector>

namespace partita::core {

class FactorClasses {
 public:
  // A dimension of which nothing is known yet; returns its number. Sizes are at
  // least 1.
  int AddDim(int64_t size);

  // The segments of a dimension as numbers of classes. Valid until the next
  // call of Unify.
  std::vector<int> Segments(int dim) const;
  int64_t SegmentSize(int segment) const { return nodes_[segment].size; }

  // Says that the concatenated segments of `a` and those of `b` are the same,
  // pairwise from the most significant on. Where sizes do not divide each other
  // the rest stays apart, and the answer is false.
  bool Unify(const std::vector<int>& a, const std::vector<int>& b);

  // Says that two dimensions mean the same though their sizes differ (rows of
  // an image before and after a stride). Their segments stay apart.
  void Link(int a, int b) { links_.push_back({a, b}); }
  // The segments linked with each other: of dimensions with as many segments
  // on both sides, one by one.
  std::vector<std::pair<int, int>> LinkedSegments() const;

 private:
  struct Node {
    int64_t size = 1;
    int parent = -1;             // -1: stands for its class
    int major = -1, minor = -1;  // of a class that is split
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
