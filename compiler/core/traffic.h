// Counts the bytes that a collective moves. The compiler counts them only here;
// tests/conformance checks that the runtime's count agrees.
#ifndef PARTITA_COMPILER_CORE_TRAFFIC_H_
#define PARTITA_COMPILER_CORE_TRAFFIC_H_

#include <cstdint>

#include "compiler/core/terms.h"

namespace partita::core {

// Parameters of the count, for one collective.
struct CollectiveWork {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  int64_t group = 1;        // number of participating devices
  int64_t input_bytes = 0;  // input bytes per device, padding included
  // Rows of `dim` in the local input and output, for kReduceScatter, kAllToAll
  // and kExchange.
  int64_t rows = 0, output_rows = 0;
  // Rows of the gathered dimension, for kAllToAll.
  int64_t other_rows = 0, other_output_rows = 0;
  // For kExchange: device i owns rows [i * rows, (i + 1) * rows) of `size` and
  // receives rows [i * step + offset, ... + output_rows).
  // For kSendRows and kReturnRows: `size` is the number of rows that a device
  // sends, each of input_bytes / rows.
  int64_t size = 0, step = 0, offset = 0;
};

// Returns the larger of bytes sent and bytes received by the busiest device,
// with the algorithm that moves the fewest bytes. All-reduce: 2(n-1)/n of the
// tensor. All-gather and reduce-scatter: n-1 shards. All-to-all and exchange:
// the rows that other devices own. Permute: the whole. Broadcast: n-1 copies.
// Rows beyond a dimension's end are not sent, except by all-gather and
// reduce-scatter, where the first device has full blocks only. Sending and
// returning rows: the even share, size * (n-1)/n rows. A group of one moves
// nothing.
int64_t BytesMoved(const CollectiveWork& work);

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_TRAFFIC_H_
