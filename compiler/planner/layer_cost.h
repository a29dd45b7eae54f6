// The time of one layer, of the embedding and of the head, of one microbatch on
// one rank.
#ifndef PARTITA_COMPILER_PLANNER_LAYER_COST_H_
#define PARTITA_COMPILER_PLANNER_LAYER_COST_H_

#include "compiler/planner/architecture.h"
#include "compiler/planner/cluster.h"
#include "compiler/planner/software.h"

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

// Whether what is asked is what our own programs do.
bool IsOwn(const Setting& setting);

PartCost LayerCost(const Setting& setting);
PartCost DecoderLayerCost(const Setting& setting);
PartCost EmbeddingCost(const Setting& setting);
PartCost HeadCost(const Setting& setting);
// Of our own programs by formulas, a microbatch: what adding the gradients of
// so many parameters, of all ranks of tp, to sums in f32 takes. The first ones
// are not added. 0 of other software, and where IsOwn.
double SumTime(const Setting& setting, double parameters);

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_LAYER_COST_H_
