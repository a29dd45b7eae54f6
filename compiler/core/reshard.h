// Finds the cheapest collectives that convert one sharding of a value to
// another.
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
  int dim = -1;        // dimension gathered, scattered, sliced or exchanged
  int other_dim = -1;  // kAllToAll: the gathered dimension
  Reduction reduction = Reduction::kSum;
  Sharding result;    // after this step
  int64_t bytes = 0;  // see BytesMoved
  // kPermute: the same parts of axes in another order. The device with index i
  // along `to_axes` receives the value of the device with index i along `axes`.
  std::vector<AxisRef> to_axes;
};

// Cost of a step: latency * (rounds of the algorithm) + bytes /
// bytes_per_second, in seconds.
struct Link {
  double latency = 5e-6;
  double bytes_per_second = 1e10;
};

struct ReshardPlan {
  std::vector<Collective> steps;
  double seconds = 0;
};

// Finds the cheapest sequence by a shortest-path search over shardings.
// `reduction` combines the unreduced axes of `from`. Axes unreduced in `to`
// must be unreduced in `from`, and stay so. Both shardings must fit the shape
// and the mesh; a sequence always exists. An empty sequence means that every
// device already holds its result, even if the notation differs, such as a and
// a:(1)2, a:(2)2, or an axis of size 1. The last step's result is `to`.
ReshardPlan PlanReshard(const Mesh& mesh, const std::vector<int64_t>& shape,
                        int64_t element_bytes, const Sharding& from,
                        const Sharding& to,
                        Reduction reduction = Reduction::kSum,
                        const Link& link = {});

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_RESHARD_H_
