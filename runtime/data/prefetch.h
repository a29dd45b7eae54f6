// Batches made ready by a thread while the step before them runs.
#ifndef PARTITA_RUNTIME_DATA_PREFETCH_H_
#define PARTITA_RUNTIME_DATA_PREFETCH_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/data/batch_source.h"

namespace partita::data {

// Reads up to `depth` >= 1 batches of `source` ahead, in memory for as many.
// Next exchanges the caller's batch for the oldest one that is ready, so
// pointers taken from the batch before are not good after it. State is the
// position after the batch last given, whatever was read ahead. An error of the
// source comes out in its turn, and again at each Next until a Restore. The
// destructor waits for the batch that is being read.
absl::StatusOr<std::unique_ptr<BatchSource>> Prefetch(
    std::unique_ptr<BatchSource> source, int depth);

}  // namespace partita::data

#endif  // PARTITA_RUNTIME_DATA_PREFETCH_H_
