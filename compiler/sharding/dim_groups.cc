// Walks both shapes at once and closes a group when the products are equal.
#include "compiler/sharding/dim_groups.h"

namespace partita::sharding {

int64_t productOf(llvm::ArrayRef<int64_t> sizes, int64_t begin, int64_t end) {
  int64_t product = 1;
  for (int64_t i = begin; i < end; ++i) product *= sizes[i];
  return product;
}

std::optional<llvm::SmallVector<DimGroup>> groupDims(
    llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to) {
  const int64_t from_rank = from.size(), to_rank = to.size();
  const int64_t elements = productOf(from, 0, from_rank);
  if (elements == 0 || elements != productOf(to, 0, to_rank))
    return std::nullopt;
  llvm::SmallVector<DimGroup> groups;
  int64_t i = 0, j = 0;
  while (i < from_rank || j < to_rank) {
    DimGroup group{i, i, j, j};
    const bool from_one = i < from_rank && from[i] == 1;
    const bool to_one = j < to_rank && to[j] == 1;
    if (i == from_rank || j == to_rank || from_one != to_one) {
      // A size 1 without a counterpart.
      if (j == to_rank || from_one)
        group.from_end = ++i;
      else
        group.to_end = ++j;
    } else {
      int64_t from_product = from[i++], to_product = to[j++];
      while (from_product != to_product) {
        if (from_product < to_product)
          from_product *= from[i++];
        else
          to_product *= to[j++];
      }
      group.from_end = i;
      group.to_end = j;
    }
    groups.push_back(group);
  }
  return groups;
}

}  // namespace partita::sharding
