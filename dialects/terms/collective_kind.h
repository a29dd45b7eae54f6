// How tensors move between the devices of a group.
#ifndef PARTITA_DIALECTS_TERMS_COLLECTIVE_KIND_H_
#define PARTITA_DIALECTS_TERMS_COLLECTIVE_KIND_H_

#include <cstdint>

namespace partita::terms {

// Shapes: a dimension of size S divided in blocks of b rows over n devices.
enum class CollectiveKind : uint32_t {
  kAllReduce,  // sums (or max ...) over `axes`; shape stays
  kAllGather,  // dim: b rows -> S rows (of the group: the last may be short)
  kReduceScatter,  // dim: S rows -> b rows, reduced over `axes`
  kAllToAll,       // dim: S -> b rows, other_dim: b' -> S' rows
  kAllSlice,       // dim: S -> b rows, no traffic
  kExchange,       // dim: rows move so that blocks are of another length
  kPermute,        // same shapes; the device at each position changes
  kBroadcast,      // same shapes; all devices get the tensor of one of them
};

// All values, in the order of their numbers.
inline constexpr CollectiveKind kCollectiveKinds[] = {
    CollectiveKind::kAllReduce,     CollectiveKind::kAllGather,
    CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll,
    CollectiveKind::kAllSlice,      CollectiveKind::kExchange,
    CollectiveKind::kPermute,       CollectiveKind::kBroadcast};

// The name in IR, plans and programs, e.g. "all_reduce".
const char* NameOf(CollectiveKind kind);

}  // namespace partita::terms

#endif  // PARTITA_DIALECTS_TERMS_COLLECTIVE_KIND_H_
