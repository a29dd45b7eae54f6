// What a division of a model costs: the time of a training step, where it goes,
// and the memory. No search, no compilation: sizes in, numbers out.
#ifndef PARTITA_COMPILER_PLANNER_TRANSFORMER_EVALUATE_H_
#define PARTITA_COMPILER_PLANNER_TRANSFORMER_EVALUATE_H_

#include <string>

#include "absl/status/statusor.h"
#include "compiler/planner/cluster/cluster.h"
#include "compiler/planner/transformer/architecture.h"
#include "compiler/planner/transformer/software.h"

namespace partita::planner {

// Bytes of the fullest rank.
struct MemoryUse {
  double parameters = 0, gradients = 0, optimizer = 0;
  double activations = 0;  // of all microbatches in flight
  double working = 0;      // logits, what recomputing holds, gathered weights
  double libraries = 0;    // scratch memory of matrix products and the like
  double host = 0;         // in the host's memory, none of the total
  double total() const {
    return parameters + gradients + optimizer + activations + working +
           libraries;
  }
};

// Bytes of the optimizer's states of a parameter, a copy of it included.
double OptimizerBytes(const Division& division, const Software& software);
// Bytes that a (first) layer saves of one microbatch on one rank.
double LayerActivationBytes(const Architecture& architecture,
                            const Division& division, const Software& software);
// Microbatches that the first rank has in flight, as a multiple of what its
// layers save of one: pp of 1F1B, pp (1 + (pp-1)/(pp v)) of interleaved; of
// zero-bubble schedules every rank has pp, of GPipe all.
double InFlight(const Division& division);
MemoryUse EvaluateMemory(const Architecture& architecture,
                         const Division& division, const Software& software);
// Of one of the pp ranks of a pipeline.
MemoryUse EvaluateRankMemory(const Architecture& architecture,
                             const Division& division, const Software& software,
                             int rank);
// What a rank has in the host's memory: `host` of the fullest.
double HostBytes(const Architecture& architecture, const Division& division,
                 const Software& software);

// Seconds of one step. The parts add up to `step`; compute's are of the busiest
// rank.
struct Prediction {
  double step = 0;
  double products = 0, attention = 0, elementwise = 0;
  double host = 0;    // waiting for kernels to be launched
  double tensor = 0;  // exposed collectives of tp, sp, cp
  double data = 0;    // exposed collectives of dp and ZeRO
  double bubble = 0;  // waiting of the busiest rank, transfers included
  double optimizer = 0;
  double other = 0;  // of a step, not of its layers
  MemoryUse memory;
  double last_rank_memory = 0;  // bytes of a pipeline's last rank
  std::string traffic;          // what is sent; of compiled programs alone
  bool fits = false;
  std::string bound;  // the largest of the parts, or "memory"
  double exposed() const { return tensor + data; }
};

absl::StatusOr<Prediction> Evaluate(const Architecture& architecture,
                                    const Division& division,
                                    const Cluster& cluster,
                                    const Software& software);

// Seconds that a step takes at least: its microbatches, and what comes after.
struct StepBound {
  double pipeline = 0, rest = 0;
  double step() const { return pipeline + rest; }
};

// At most the `step` that Evaluate gives for any `cut` of that division, which
// is not read: what a search may leave out by. No timetable, so it is quick;
// without a pipeline it is the step itself.
absl::StatusOr<StepBound> LeastStep(const Architecture& architecture,
                                    const Division& division,
                                    const Cluster& cluster,
                                    const Software& software);

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_TRANSFORMER_EVALUATE_H_
