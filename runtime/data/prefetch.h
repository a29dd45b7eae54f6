// Reads batches in a thread while the previous step runs.
#ifndef PARTITA_RUNTIME_DATA_PREFETCH_H_
#define PARTITA_RUNTIME_DATA_PREFETCH_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/data/batch_source.h"

namespace partita::data {

// Reads up to `depth` >= 1 batches of `source` ahead, into memory for as many.
// Next exchanges the caller's batch for the oldest ready one, so pointers into
// the previous batch become invalid. State is the position after the last
// returned batch, independent of batches read ahead. An error of the source is
// returned in its turn, and by every later Next until a Restore. The destructor
// waits for the batch being read.
absl::StatusOr<std::unique_ptr<BatchSource>> Prefetch(
    std::unique_ptr<BatchSource> source, int depth);

}  // namespace partita::data

#endif  // PARTITA_RUNTIME_DATA_PREFETCH_H_
