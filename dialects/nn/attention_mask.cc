// Tables of visible blocks, and numbers of visible pairs.
#include "dialects/nn/attention_mask.h"

#include <algorithm>

namespace partita::nn {

BlockTable::BlockTable(mlir::DenseIntElementsAttr blocks, int64_t size)
    : size_(size) {
  const llvm::ArrayRef<int64_t> shape = blocks.getType().getShape();
  heads_ = shape[0];
  rows_ = shape[1];
  columns_ = shape[2];
  visible_.reserve(heads_ * rows_ * columns_);
  for (const bool is_visible : blocks.getValues<bool>())
    visible_.push_back(is_visible);
}

bool BlockTable::sees(int64_t head, int64_t position, int64_t key) const {
  const int64_t row = std::max<int64_t>(position, 0) / size_;
  return holds(std::clamp<int64_t>(head, 0, heads_ - 1),
               std::min(row, rows_ - 1), key / size_);
}

int64_t countVisiblePairs(int64_t queries, int64_t keys,
                          std::optional<int64_t> last,
                          std::optional<int64_t> window,
                          std::optional<int64_t> sinks,
                          const BlockTable* blocks) {
  // The pairs of query i with keys from `begin` to `end`.
  const auto seen = [&](int64_t i, int64_t begin, int64_t end) -> int64_t {
    if (!last) return end - begin;
    const int64_t behind = i + *last + 1;
    const int64_t below = std::clamp(behind, begin, end);
    int64_t first = begin;
    if (window) first = std::clamp(behind - *window, begin, below);
    int64_t pairs = below - first;
    if (sinks) pairs += std::clamp(*sinks, begin, first) - begin;
    return pairs;
  };
  int64_t pairs = 0;
  if (!blocks) {
    for (int64_t i = 0; i < queries; ++i) pairs += seen(i, 0, keys);
    return pairs;
  }
  const int64_t size = blocks->size();
  for (int64_t head = 0; head < blocks->heads(); ++head)
    for (int64_t row = 0; row < blocks->rows(); ++row)
      for (int64_t column = 0; column < blocks->columns(); ++column) {
        if (!blocks->holds(head, row, column)) continue;
        const int64_t end = std::min((row + 1) * size, queries);
        for (int64_t i = row * size; i < end; ++i)
          pairs += seen(i, column * size, std::min((column + 1) * size, keys));
      }
  return pairs / blocks->heads();
}

}  // namespace partita::nn
