// A step of our own programs around its layers: what a rank's main keeps while
// functions run, and what it does between them.
#ifndef PARTITA_COMPILER_PLANNER_OWN_STEP_H_
#define PARTITA_COMPILER_PLANNER_OWN_STEP_H_

#include <vector>

#include "compiler/core/schedule.h"
#include "compiler/planner/architecture.h"
#include "compiler/planner/cluster.h"
#include "compiler/planner/evaluate.h"

namespace partita::planner {

// compiler/partition/passes.td: a bucket of collectives is full.
inline constexpr double kBucketBytes = 26214400;
// compiler/memory/passes.td: inputs and results of what is in flight.
inline constexpr double kMostInFlight = 67108864;
// Of an element of sums over microbatches.
inline constexpr double kSumBytes = 4;

// Core's table of a pipeline with so many microbatches.
core::Schedule ScheduleOf(const Division& division, int microbatches);

// Of one of the pp ranks; of what KnowsOwn (own_layers.h).
MemoryUse OwnMemory(const Architecture& architecture, const Division& division,
                    int rank);

// Seconds of a step on one of the ranks beyond its layers, embedding and head.
struct OwnRest {
  double sums = 0;     // over microbatches, of gradients
  double packing = 0;  // of buckets, and cutting them up
  double exposed = 0;  // of dp's collectives: what backward does not hide
  // Of the first rank of a pipeline: once the last one's gradient of a tied
  // table is there, to add it and to reduce the sum.
  double table = 0;
  double update = 0;
  double layer_sum = 0;  // of `sums`, a layer's of one microbatch
  double stall = 0;      // of `exposed`, within the backward pass
  double total() const { return sums + packing + exposed + table + update; }
};
OwnRest OwnRestTime(const Architecture& architecture, const Division& division,
                    const Cluster& cluster, int rank);

// A pipeline's cells, with sums that are even over microbatches. Seconds.
struct OwnCells {
  std::vector<double> ends;  // of each rank's last one
  double first_end = 0;      // of the first rank's first one
  double head = 0;           // when the last rank's first head could run
};
struct OwnFinish {
  double end = 0;  // of the step
  OwnRest rest;    // of the rank that ends last
};
// `rests` of all ranks.
OwnFinish FinishOwnStep(const Architecture& architecture,
                        const Division& division, const Cluster& cluster,
                        const OwnCells& cells,
                        const std::vector<OwnRest>& rests);

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_OWN_STEP_H_
