// The cheapest sequence of collectives between two shardings of one value.
#ifndef PARTITA_COMPILER_CORE_RESHARD_H_
#define PARTITA_COMPILER_CORE_RESHARD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/core/mesh.h"
#include "compiler/core/sharding.h"
#include "compiler/core/terms.h"
#include "compiler/core/traffic.h"

namespace partita::core {

struct Collective {
  CollectiveKind kind;
  std::vector<AxisRef> axes;  // the group; its first axis is the slowest
  int dim = -1;               // gathered, scattered, sliced, exchanged
  int other_dim = -1;         // of kAllToAll: the one gathered
  Reduction reduction = Reduction::kSum;
  Sharding result;    // after this step
  int64_t bytes = 0;  // see BytesMoved
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

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_RESHARD_H_
