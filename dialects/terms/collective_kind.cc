// Names of collectives.
#include "dialects/terms/collective_kind.h"

namespace partita::terms {

const char* NameOf(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return "all_reduce";
    case CollectiveKind::kAllGather:
      return "all_gather";
    case CollectiveKind::kReduceScatter:
      return "reduce_scatter";
    case CollectiveKind::kAllToAll:
      return "all_to_all";
    case CollectiveKind::kAllSlice:
      return "all_slice";
    case CollectiveKind::kExchange:
      return "exchange";
    case CollectiveKind::kPermute:
      return "permute";
    case CollectiveKind::kBroadcast:
      return "broadcast";
    case CollectiveKind::kSendRows:
      return "send_rows";
    case CollectiveKind::kReturnRows:
      return "return_rows";
  }
  return "";
}

}  // namespace partita::terms
