// Proposes a mask from a few rows, then compares it with all of them.
#include "compiler/simplify/sparse_mask.h"

#include <algorithm>

namespace partita::simplify {
namespace {

// Kernels skip blocks of whole vectors. Smaller blocks would save little.
constexpr int64_t kLargestBlock = 512, kSmallestBlock = 16;

class Matcher {
 public:
  Matcher(int64_t queries, int64_t keys) : queries_(queries), keys_(keys) {}

  // False if a score is changed otherwise, or a query sees no key.
  bool read(llvm::function_ref<std::optional<bool>(int64_t, int64_t)> hides) {
    visible_.resize(queries_ * keys_);
    for (int64_t i = 0; i < queries_; ++i) {
      bool sees_some = false;
      for (int64_t j = 0; j < keys_; ++j) {
        const std::optional<bool> hidden = hides(i, j);
        if (!hidden) return false;
        visible_[i * keys_ + j] = !*hidden;
        sees_some |= !*hidden;
      }
      if (!sees_some) return false;
    }
    return queries_ > 0;
  }

  // The last query shows the sinks, a gap and the window.
  std::optional<ConstantMask> matchSinks() const {
    const int64_t query = queries_ - 1, sinks = runFrom(query, 0);
    int64_t begin = sinks;
    while (begin < keys_ && !sees(query, begin)) ++begin;
    if (sinks == 0 || begin == keys_) return std::nullopt;
    ConstantMask mask;
    mask.sinks = sinks;
    mask.first = begin - query;
    mask.last = begin + runFrom(query, begin) - 1 - query;
    return equals(mask) ? std::optional(mask) : std::nullopt;
  }

  std::optional<ConstantMask> matchBlocks() const {
    // The distance of the farthest later key that a query sees.
    int64_t last = -queries_;
    for (int64_t i = 0; i < queries_; ++i)
      for (int64_t j = keys_ - 1; j >= 0; --j)
        if (sees(i, j)) {
          last = std::max(last, j - i);
          break;
        }
    for (int64_t size = kLargestBlock; size >= kSmallestBlock; size /= 2) {
      if (size >= queries_ && size >= keys_) continue;
      ConstantMask mask = blocksOf(size);
      if (llvm::all_of(mask.blocks, [](bool visible) { return visible; }))
        continue;
      if (equals(mask)) return mask;
      mask.last = last;
      if (equals(mask)) return mask;
    }
    return std::nullopt;
  }

 private:
  bool sees(int64_t query, int64_t key) const {
    return visible_[query * keys_ + key];
  }

  int64_t runFrom(int64_t query, int64_t key) const {
    int64_t end = key;
    while (end < keys_ && sees(query, end)) ++end;
    return end - key;
  }

  bool equals(const ConstantMask& mask) const {
    for (int64_t i = 0; i < queries_; ++i)
      for (int64_t j = 0; j < keys_; ++j)
        if (mask.sees(i, j) != sees(i, j)) return false;
    return true;
  }

  // The blocks in which a query sees a key.
  ConstantMask blocksOf(int64_t size) const {
    ConstantMask mask;
    mask.block_size = size;
    mask.columns = (keys_ + size - 1) / size;
    mask.blocks.resize((queries_ + size - 1) / size * mask.columns);
    for (int64_t i = 0; i < queries_; ++i)
      for (int64_t j = 0; j < keys_; ++j)
        if (sees(i, j)) mask.blocks[i / size * mask.columns + j / size] = true;
    return mask;
  }

  int64_t queries_, keys_;
  std::vector<bool> visible_;
};

}  // namespace

std::optional<ConstantMask> matchSparseMask(
    int64_t queries, int64_t keys,
    llvm::function_ref<std::optional<bool>(int64_t, int64_t)> hides) {
  Matcher matcher(queries, keys);
  if (!matcher.read(hides)) return std::nullopt;
  if (auto mask = matcher.matchSinks()) return mask;
  return matcher.matchBlocks();
}

}  // namespace partita::simplify
