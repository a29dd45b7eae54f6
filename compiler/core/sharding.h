// The placement of one tensor on a mesh.
#ifndef PARTITA_COMPILER_CORE_SHARDING_H_
#define PARTITA_COMPILER_CORE_SHARDING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/core/mesh.h"

namespace partita::core {

struct DimSharding {
  // Most significant first; each axis has the priority of its entry.
  std::vector<AxisRef> axes;
  // Rows per shard: shard i holds [i * block, min((i + 1) * block, size)). 0
  // means ceil(size / shards). Other values occur in merged dimensions: 7 x 7
  // flattened over 2 has block 28, not 25. Shards may be empty.
  int64_t block = 0;
  bool open = true;  // propagation may append axes

  // Sets the priority of all axes.
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

  // True for equal placements; ignores openness and priorities.
  bool SamePlacement(const Sharding& other) const {
    return dims == other.dims && unreduced == other.unreduced;
  }
};

// Returns a sharding with all dimensions whole and open.
Sharding Replicated(int rank);
// True if the sharding uses the axis or a part of it, including in
// `replicated`.
bool Uses(const Sharding& sharding, const AxisRef& ref);
bool IsSharded(const Sharding& sharding);

// Returns the rows per shard of a dimension of this size: `block`, or the even
// share.
int64_t BlockOf(int64_t size, const DimSharding& dim);
// Sets block to 0 where it equals the even share ceil(size / shards), so that
// equal placements compare equal.
void CanonicalizeBlocks(const std::vector<int64_t>& shape, Sharding& sharding);
// Returns the padded shape on each device.
std::vector<int64_t> LocalShape(const std::vector<int64_t>& shape,
                                const Sharding& sharding);
// True if any dimension has shards with fewer rows than its block.
bool IsUneven(const std::vector<int64_t>& shape, const Sharding& sharding);
// Rows [begin, end) of a dimension that the device at `position` holds.
struct Interval {
  int64_t begin = 0, end = 0;
};
Interval OwnedRows(const Mesh& mesh, int64_t size, const DimSharding& dim,
                   int64_t position);

// Formats a sharding as "[{a, b:(1)2}, {?}, {c, ?}|28] replicated={d}
// unreduced={e}". ? marks open dimensions, |n a block other than the even
// share.
std::string ToString(const Mesh& mesh, const Sharding& sharding);

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_SHARDING_H_
