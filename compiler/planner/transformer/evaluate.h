// Predicts a division of a model: the time of a training step, how it is spent,
// and the memory. Takes only sizes; neither searches nor compiles.
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
  double activations = 0;  // all microbatches in flight
  double working = 0;      // logits, recomputed activations, gathered weights
  double libraries = 0;    // scratch memory of matrix products and the like
  double host = 0;         // in host memory, not in the total
  double total() const {
    return parameters + gradients + optimizer + activations + working +
           libraries;
  }
};

// Optimizer bytes per parameter, including its f32 copy.
double OptimizerBytes(const Division& division, const Software& software);
// Activation bytes that an (encoder) layer keeps per microbatch and rank.
double LayerActivationBytes(const Architecture& architecture,
                            const Division& division, const Software& software);
// Microbatches in flight on the first rank at peak, as a multiple of its
// layers' activations per microbatch: pp for 1F1B, pp (1 + (pp-1)/(pp v)) for
// interleaved, pp for zero-bubble schedules (on every rank), all for GPipe.
double InFlight(const Division& division);
MemoryUse EvaluateMemory(const Architecture& architecture,
                         const Division& division, const Software& software);
// Memory of one of the pp pipeline ranks.
MemoryUse EvaluateRankMemory(const Architecture& architecture,
                             const Division& division, const Software& software,
                             int rank);
// Host memory of the fullest rank, in bytes.
double HostBytes(const Architecture& architecture, const Division& division,
                 const Software& software);

// Seconds of one step. The parts add up to `step`. Computing parts are of the
// busiest rank.
struct Prediction {
  double step = 0;
  double products = 0, attention = 0, elementwise = 0;
  double host = 0;    // waiting for kernel launches
  double tensor = 0;  // exposed collectives of tp, sp, cp
  double data = 0;    // exposed collectives of dp and ZeRO
  double bubble = 0;  // waiting of the busiest rank, with transfers
  double optimizer = 0;
  double other = 0;  // per step, outside the layers
  MemoryUse memory;
  double last_rank_memory = 0;  // bytes, last pipeline rank
  std::string traffic;          // bytes sent; compiled programs only
  bool fits = false;
  std::string bound;  // name of the largest part, or "memory"
  double exposed() const { return tensor + data; }
};

absl::StatusOr<Prediction> Evaluate(const Architecture& architecture,
                                    const Division& division,
                                    const Cluster& cluster,
                                    const Software& software);

// Lower bound on the seconds of a step: its microbatches, and the rest.
struct StepBound {
  double pipeline = 0, rest = 0;
  double step() const { return pipeline + rest; }
};

// Lower bound on the `step` that Evaluate gives for any `cut` of the division;
// `cut` is not read. A search may discard divisions by it. It needs no
// timetable, so it is fast. Without a pipeline it equals the step.
absl::StatusOr<StepBound> LeastStep(const Architecture& architecture,
                                    const Division& division,
                                    const Cluster& cluster,
                                    const Software& software);

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_TRANSFORMER_EVALUATE_H_
