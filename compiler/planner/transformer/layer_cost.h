// The time of one layer, of the embedding and of the head, per microbatch on
// one rank.
#ifndef PARTITA_COMPILER_PLANNER_TRANSFORMER_LAYER_COST_H_
#define PARTITA_COMPILER_PLANNER_TRANSFORMER_LAYER_COST_H_

#include "compiler/planner/cluster/cluster.h"
#include "compiler/planner/transformer/architecture.h"
#include "compiler/planner/transformer/software.h"

namespace partita::planner {

// Kernels in the forward pass of a layer. A layer's dispatch divided by it is
// the host's time for one of PyTorch's operations.
constexpr double kKernelsOfLayer = 60;

// Seconds of a forward or backward pass, by category.
struct Pass {
  double products = 0, attention = 0, elementwise = 0;
  double tensor = 0;  // exposed collectives
  double host = 0;    // launch time beyond all of these
  double total() const {
    return products + attention + elementwise + tensor + host;
  }
  Pass& operator+=(const Pass& other);
};
Pass operator*(double times, Pass pass);

// Ranks with the same experts, over which ZeRO divides their states.
int ExpertReplicas(const Division& division, const Software& software);

// Cost of a part of the model. `backward` includes recomputation.
struct PartCost {
  Pass forward, backward;
  // The part of backward in products for gradients of weights. Only the update
  // waits for them.
  double weights = 0;
};

// Everything that determines a layer's time.
struct Setting {
  const Architecture& architecture;
  const Division& division;
  const Cluster& cluster;
  const Software& software;
};

PartCost LayerCost(const Setting& setting);
PartCost DecoderLayerCost(const Setting& setting);
PartCost EmbeddingCost(const Setting& setting);
PartCost HeadCost(const Setting& setting);
// Seconds of adding gradients to f32 sums in Partita's own programs, per
// microbatch. This is a mean, because the first microbatch is not added. Values
// are per layer, per T5 decoder layer, and for the embedding and the head. A
// tied table has two sums if its ends are on different ranks. 0 for other
// software and for adapters.
struct Sums {
  double layer = 0, decoder = 0, embedding = 0, head = 0;
};
Sums SumsOf(const Setting& setting);

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_TRANSFORMER_LAYER_COST_H_
