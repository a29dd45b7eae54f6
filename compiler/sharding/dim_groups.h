// Which dimensions on the two sides of a reshape belong together.
#ifndef PARTITA_COMPILER_SHARDING_DIM_GROUPS_H_
#define PARTITA_COMPILER_SHARDING_DIM_GROUPS_H_

#include <optional>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

namespace partita::sharding {

// Dimensions [from_begin, from_end) become dimensions [to_begin, to_end): equal
// products, and no smaller group would do. One side may be empty where the
// other has dimensions of size 1.
struct DimGroup {
  int64_t from_begin = 0, from_end = 0, to_begin = 0, to_end = 0;
};

// The groups in order; they cover both shapes. Nothing where a size is 0 or the
// products differ.
std::optional<llvm::SmallVector<DimGroup>> groupDims(
    llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to);

// The product of sizes [begin, end).
int64_t productOf(llvm::ArrayRef<int64_t> sizes, int64_t begin, int64_t end);

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_DIM_GROUPS_H_
