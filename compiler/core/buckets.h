// Sizes of collective buckets: defaults of the passes that form them, and the
// planner's estimate.
#ifndef PARTITA_COMPILER_CORE_BUCKETS_H_
#define PARTITA_COMPILER_CORE_BUCKETS_H_

#include <cstdint>

namespace partita::core {

// Size of a full bucket of small collectives: 25 MiB, as in PyTorch's
// DistributedDataParallel.
inline constexpr int64_t kBucketBytes = int64_t{25} << 20;

// Upper bound for inputs and results of collectives in flight: 64 MiB holds a
// full bucket and its sum, with some margin.
inline constexpr int64_t kBytesInFlight = int64_t{64} << 20;

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_BUCKETS_H_
