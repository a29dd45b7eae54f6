// How one tensor lies on a mesh.
#ifndef PARTITA_COMPILER_CORE_SHARDING_H_
#define PARTITA_COMPILER_CORE_SHARDING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/core/mesh.h"

namespace partita::core {

struct DimSharding {
  // The first is the most significant; each with the priority of its entry.
  std::vector<AxisRef> axes;
  // Rows per shard: shard i holds [i * block, min((i + 1) * block, size)). 0
  // means ceil(size / shards). Other values arise where a dimension is several
  // factors: 7 x 7 flattened over 2 has block 28, not 25. Shards may be empty.
  int64_t block = 0;
  bool open = true;  // whether propagation may append axes

  // Gives all axes this priority.
  void SetPriority(int priority) {
    for (AxisRef& axis : axes) axis.priority = priority;
  }

  bool operator==(const DimSharding& other) const {
    return axes == other.axes && block == other.block;
  }
};

struct Sharding {
  std::vector<DimSharding> dims;
  std::vector<AxisRef> replicated;  // axes that propagation may not use here
  std::vector<AxisRef> unreduced;   // the value is the sum over these axes

  // Same placement; openness and priorities do not count.
  bool SamePlacement(const Sharding& other) const {
    return dims == other.dims && unreduced == other.unreduced;
  }
};

// All dims whole and open.
Sharding Replicated(int rank);
// Whether an axis (or a part of it) is used anywhere in the sharding,
// `replicated` included.
bool Uses(const Sharding& sharding, const AxisRef& ref);
bool IsSharded(const Sharding& sharding);

// Rows per shard of a dimension of this size: `block`, or the even share.
int64_t BlockOf(int64_t size, const DimSharding& dim);
// Fills in block where it is the even share (so that equal placements compare
// equal): sets 0 where block equals ceil(size / shards).
void CanonicalizeBlocks(const std::vector<int64_t>& shape, Sharding& sharding);
// Padded shape on each device.
std::vector<int64_t> LocalShape(const std::vector<int64_t>& shape,
                                const Sharding& sharding);
// Whether any dimension has shards of less than block rows.
bool IsUneven(const std::vector<int64_t>& shape, const Sharding& sharding);
// Rows [begin, end) of dimension `dim` that the device at `position` holds.
struct Interval {
  int64_t begin = 0, end = 0;
};
Interval OwnedRows(const Mesh& mesh, int64_t size, const DimSharding& dim,
                   int64_t position);

// "[{a, b:(1)2}, {?}, {c, ?}|28] replicated={d} unreduced={e}": ? marks open
// dims, |n a block that is not the even share.
std::string ToString(const Mesh& mesh, const Sharding& sharding);

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_SHARDING_H_
