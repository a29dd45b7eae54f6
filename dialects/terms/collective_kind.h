// Kinds of collectives: how tensors move between the devices of a group.
#ifndef PARTITA_DIALECTS_TERMS_COLLECTIVE_KIND_H_
#define PARTITA_DIALECTS_TERMS_COLLECTIVE_KIND_H_

#include <cstdint>

namespace partita::terms {

// Shapes: a dimension of size S is divided into blocks of b rows over n
// devices.
enum class CollectiveKind : uint32_t {
  kAllReduce,      // reduces (sum, max ...) over `axes`; same shape
  kAllGather,      // dim: b rows -> S rows (the last block may be short)
  kReduceScatter,  // dim: S rows -> b rows, reduced over `axes`
  kAllToAll,       // dim: S -> b rows, other_dim: b' -> S' rows
  kAllSlice,       // dim: S -> b rows, no traffic
  kExchange,       // dim: rows move to blocks of another length
  kPermute,        // same shape; shards change devices
  kBroadcast,      // same shape; all devices get the tensor of one device
  kSendRows,       // each row goes to the devices that its numbers name
  kReturnRows,     // rows go back to where kSendRows sent them from
};

// All values in numeric order.
inline constexpr CollectiveKind kCollectiveKinds[] = {
    CollectiveKind::kAllReduce,     CollectiveKind::kAllGather,
    CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll,
    CollectiveKind::kAllSlice,      CollectiveKind::kExchange,
    CollectiveKind::kPermute,       CollectiveKind::kBroadcast,
    CollectiveKind::kSendRows,      CollectiveKind::kReturnRows};

// The name in IR, plans and programs, e.g. "all_reduce".
const char* NameOf(CollectiveKind kind);

}  // namespace partita::terms

#endif  // PARTITA_DIALECTS_TERMS_COLLECTIVE_KIND_H_
