// The cheapest sequence of collectives between two shardings of one value.
#ifndef PARTITA_COMPILER_CORE_RESHARD_H_
#define PARTITA_COMPILER_CORE_RESHARD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/core/mesh.h"
#include "compiler/core/rule.h"
#include "compiler/core/sharding.h"

namespace partita::core {

// Shapes: a dimension of size S divided in blocks of b rows over n devices.
enum class CollectiveKind {
  kAllReduce,  // sums (or max ...) over `axes`; shape stays
  kAllGather,  // dim: b rows -> S rows (of the group: the last may be short)
  kReduceScatter,  // dim: S rows -> b rows, reduced over `axes`
  kAllToAll,       // dim: S -> b rows, other_dim: b' -> S' rows
  kAllSlice,       // dim: S -> b rows, no traffic
  kExchange,       // dim: rows move so that blocks are of another length
  kPermute,        // same shapes; the device at each position changes
};

struct Collective {
  CollectiveKind kind;
  std::vector<AxisRef> axes;  // the group; its first axis is the slowest
  int dim = -1;               // gathered, scattered, sliced, exchanged
  int other_dim = -1;         // of kAllToAll: the one gathered
  Reduction reduction = Reduction::kSum;
  Sharding result;    // after this step
  int64_t bytes = 0;  // that each device sends, as a ring must
  // Of kPermute: the same parts of axes in another order; the device of index i
  // along these gets what the device of index i along `axes` has.
  std::vector<AxisRef> to_axes;
};

// seconds = latency * (steps of the algorithm) + bytes / bytes_per_second.
struct Link {
  double latency = 5e-6;
  double bytes_per_second = 1e10;
};

struct ReshardPlan {
  std::vector<Collective> steps;
  double seconds = 0;
};

// Finds the cheapest sequence by Dijkstra's search over shardings; `reduction`
// is how `from`'s unreduced axes combine. Axes unreduced in `to`, which must be
// so in `from`, stay unreduced. Both shardings must fit the shape and the mesh;
// there is always a way. No steps mean that every device has what it needs,
// though the two may write it differently: a as a:(1)2, a:(2)2, or an axis of
// one position. The last step's result is `to`.
ReshardPlan PlanReshard(const Mesh& mesh, const std::vector<int64_t>& shape,
                        int64_t element_bytes, const Sharding& from,
                        const Sharding& to,
                        Reduction reduction = Reduction::kSum,
                        const Link& link = {});

// Bytes that each device sends: of one collective on a tensor whose local input
// shape is given. n = group size: all-reduce 2(n-1)/n of the tensor, all-gather
// n-1 shards, reduce-scatter and all-to-all (n-1)/n of the input; exchange and
// permute at most all of it. A plan's steps count more closely where shards are
// uneven: whole blocks are sent.
int64_t BytesSent(CollectiveKind kind, int64_t group, int64_t input_bytes);

std::string ToString(CollectiveKind kind);

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_RESHARD_H_
