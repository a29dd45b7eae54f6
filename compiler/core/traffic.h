// How many bytes a collective moves: the one place where the compiler counts
// them. tests/conformance holds the runtime's count to it.
#ifndef PARTITA_COMPILER_CORE_TRAFFIC_H_
#define PARTITA_COMPILER_CORE_TRAFFIC_H_

#include <cstdint>

#include "compiler/core/terms.h"

namespace partita::core {

// What the count of one collective depends on.
struct CollectiveWork {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  int64_t group = 1;        // devices that take part together
  int64_t input_bytes = 0;  // of one device's input, padding included
  // Rows of `dim` in the local input and output: of kReduceScatter, kAllToAll
  // and kExchange.
  int64_t rows = 0, output_rows = 0;
  // Rows of the gathered dimension, of kAllToAll.
  int64_t other_rows = 0, other_output_rows = 0;
  // Of kExchange: device i, who owns rows [i * rows, (i + 1) * rows) of `size`,
  // takes rows [i * step + offset, ... + output_rows).
  int64_t size = 0, step = 0, offset = 0;
};

// Bytes that the busiest device sends or receives, whichever is more, with the
// algorithm that moves least: all-reduce 2(n-1)/n of the tensor; all-gather and
// reduce-scatter n-1 shards; all-to-all and exchange what others own; permute
// the whole; broadcast n-1 copies. Rows beyond a dimension's end are not sent,
// except by all-gather and reduce-scatter, of which the first device has none.
// A group of one moves nothing.
int64_t BytesMoved(const CollectiveWork& work);

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_TRAFFIC_H_
