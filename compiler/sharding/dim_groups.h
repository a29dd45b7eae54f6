// Finds which dimensions on the two sides of a reshape correspond.
#ifndef PARTITA_COMPILER_SHARDING_DIM_GROUPS_H_
#define PARTITA_COMPILER_SHARDING_DIM_GROUPS_H_

#include <optional>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

namespace partita::sharding {

// Dimensions [from_begin, from_end) become dimensions [to_begin, to_end). Both
// ranges have the same product, and no smaller group does. One side may be
// empty if the other has only dimensions of size 1.
struct DimGroup {
  int64_t from_begin = 0, from_end = 0, to_begin = 0, to_end = 0;
};

// Returns the groups in order; they cover both shapes. Returns nullopt if a
// size is 0 or the products of the two shapes differ.
std::optional<llvm::SmallVector<DimGroup>> groupDims(
    llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to);

// Returns the product of sizes [begin, end).
int64_t productOf(llvm::ArrayRef<int64_t> sizes, int64_t begin, int64_t end);

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_DIM_GROUPS_H_
