// Sizes of collectives that are sent together, which the passes that form them
// take by default and the planner counts with.
#ifndef PARTITA_COMPILER_CORE_BUCKETS_H_
#define PARTITA_COMPILER_CORE_BUCKETS_H_

#include <cstdint>

namespace partita::core {

// A bucket of small collectives is full: 25 MiB, as in PyTorch's
// DistributedDataParallel.
inline constexpr int64_t kBucketBytes = int64_t{25} << 20;

// Inputs and results of the collectives in flight: a full bucket and its sum,
// and some.
inline constexpr int64_t kBytesInFlight = int64_t{64} << 20;

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_BUCKETS_H_
