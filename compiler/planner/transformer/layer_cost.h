// The time of one layer, of the embedding and of the head, of one microbatch on
// one rank.
#ifndef PARTITA_COMPILER_PLANNER_TRANSFORMER_LAYER_COST_H_
#define PARTITA_COMPILER_PLANNER_TRANSFORMER_LAYER_COST_H_

#include "compiler/planner/cluster/cluster.h"
#include "compiler/planner/transformer/architecture.h"
#include "compiler/planner/transformer/software.h"

namespace partita::planner {

// Seconds of a pass, by what they go to.
struct Pass {
  double products = 0, attention = 0, elementwise = 0;
  double tensor = 0;  // exposed collectives
  double host = 0;    // what launching takes longer than all of these
  double total() const {
    return products + attention + elementwise + tensor + host;
  }
  Pass& operator+=(const Pass& other);
};
Pass operator*(double times, Pass pass);

// A part of the model; `backward` recomputes first what is to be recomputed.
struct PartCost {
  Pass forward, backward;
  // Of backward, products that only gradients of weights wait for.
  double weights = 0;
};

// Everything that a layer's time depends on.
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
// Of our own programs by formulas, seconds of adding gradients to sums in f32,
// in the mean over microbatches, of which the first is not added: of a layer,
// of a T5's decoder layer, and of what is before and after them. A tied table
// has two sums where its ends are on different ranks. 0 of other software and
// of adapters.
struct Sums {
  double layer = 0, decoder = 0, embedding = 0, head = 0;
};
Sums SumsOf(const Setting& setting);

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_TRANSFORMER_LAYER_COST_H_
