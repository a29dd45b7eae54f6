// A step of our own programs around its layers: what a rank's main keeps while
// functions run, and what it does between them.
#ifndef PARTITA_COMPILER_PLANNER_OWN_STEP_H_
#define PARTITA_COMPILER_PLANNER_OWN_STEP_H_

#include <array>
#include <vector>

#include "compiler/core/buckets.h"
#include "compiler/core/schedule.h"
#include "compiler/planner/architecture.h"
#include "compiler/planner/cluster.h"
#include "compiler/planner/evaluate.h"

namespace partita::planner {

// compiler/partition/passes.td: a bucket of collectives is full.
using core::kBucketBytes;
// compiler/memory/passes.td: inputs and results of what is in flight.
inline constexpr double kMostInFlight = core::kBytesInFlight;
// Of an element of sums over microbatches.
inline constexpr double kSumBytes = 4;

// Core's table of a pipeline with so many microbatches.
core::Schedule ScheduleOf(const Division& division, int microbatches);
// The microbatches after which it repeats itself, and more change nothing.
int ShownOf(const Division& division);

// A function to its caller: what it holds while it runs, and what it leaves.
struct OwnFunction {
  double forward = 0, backward = 0;  // frames
  double saved = 0, output = 0;
};

// Elements of the parameters of one device.
struct OwnTotals {
  OwnTotals(const Architecture& architecture, const Division& division);
  double layer = 0, embedding = 0, head = 0;
};

// What the functions of a step take, in bytes of one microbatch on one device,
// and the elements of their parameters (own_layers.h). Does not depend on the
// division's pp, dp, zero, schedule and cut.
struct OwnSizes {
  OwnSizes(const Architecture& architecture, const Division& division);

  OwnFunction layer, embedding, head;
  OwnTotals totals;
  // Where weights' gradients come later than inputs': what is kept of a layer
  // for them besides, gradients of what its products gave.
  double pending = 0;
  std::vector<double> layer_parameters, embedding_parameters, head_parameters;
};

// Of one of the pp ranks; of what KnowsOwn (own_layers.h). ZeRO-3's parameters
// are those that a device has between uses.
MemoryUse OwnMemory(const OwnSizes& sizes, const Architecture& architecture,
                    const Division& division, int rank);
// At most the total of that where the rank has so many layers in all, and the
// two LeastInFlight: what a search may leave out by.
double LeastOwnMemory(const OwnSizes& sizes, const Architecture& architecture,
                      const Division& division, int rank, double layers,
                      double in_flight, double in_flight_summed);
// Layers, as often as there are microbatches, whose activations a rank keeps at
// the least when it has most of them, or when it has `summed` all gradients of
// two microbatches: in the division's own cut, and of so many layers that are
// dealt to its stages `evenly`, or anyhow.
double LeastInFlight(const Architecture& architecture, const Division& division,
                     int rank, bool summed);
double LeastInFlight(const Division& division, int rank, int64_t layers,
                     bool evenly, bool summed);
// What the two stages of a rank of a V (kZbV) have at one cell of the schedule,
// in microbatches.
struct Moment {
  std::array<int, 2> kept{};     // activations
  std::array<int, 2> pending{};  // of these, whose weights' gradients are due
  std::array<int, 2> summed{};  // gradients: 2 is 2 or more; 0 again at the end
};
// Of each rank, the moments that have more of something than all others.
std::vector<std::vector<Moment>> MomentsOfV(const Division& division);
// As LeastOwnMemory, of so many layers on each of the two stages.
double LeastOwnMemoryOfV(const OwnSizes& sizes,
                         const Architecture& architecture,
                         const Division& division, int rank,
                         const std::array<double, 2>& layers,
                         const std::vector<Moment>& moments);
// Of that, what does not depend on the order of things: `activations` are
// inputs and targets.
MemoryUse OwnStates(const OwnTotals& totals, const Architecture& architecture,
                    const Division& division, int rank, double layers);

// Seconds of a step on one of the ranks beyond its layers, embedding and head.
struct OwnRest {
  double sums = 0;                       // over microbatches, of gradients
  double first_sums = 0, last_sums = 0;  // of these, before and after layers
  double packing = 0;                    // of buckets, and cutting them up
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
