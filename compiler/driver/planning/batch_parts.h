// The number of devices over which a plan divides the batch.
#ifndef PARTITA_COMPILER_DRIVER_PLANNING_BATCH_PARTS_H_
#define PARTITA_COMPILER_DRIVER_PLANNING_BATCH_PARTS_H_

#include <cstdint>

#include "compiler/plan/plan.h"

namespace partita::driver {

// Counts entries that apply to the whole model. 1: the batch is not divided.
inline int64_t batchParts(const plan::Plan& plan) {
  int64_t parts = 1;
  for (const plan::Entry& entry : plan.shard)
    for (const plan::ShardedDimension& each : entry.dimensions)
      if (each.dimension == "B" && entry.at.empty())
        parts *= core::SizeOf(each.axes);
  return parts;
}

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PLANNING_BATCH_PARTS_H_
