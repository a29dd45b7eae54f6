// A model as a list of unlike layers, each divided in its own way: what
// CoAtNets ask for, whose convolutions divide by images or rows and whose
// attentions by heads. Numbers in, a choice out; step_graph.h makes the numbers
// of a model's graph.
#ifndef PARTITA_COMPILER_PLANNER_LAYERS_LAYERS_H_
#define PARTITA_COMPILER_PLANNER_LAYERS_LAYERS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace partita::planner {

// What a layer takes of a step on one device, forward and backward and its
// parameters' update: seconds and bytes.
struct LayerCost {
  double compute = 0;
  double collectives = 0;  // which what follows waits for
  double gradients = 0;    // collectives beside the backward pass
  double hiding = 0;       // of compute, what gradients can be sent beside
  double memory = 0;       // parameters, states, gradients, what is kept
};

// A mesh of two axes. The outer one divides the batch everywhere; a mapping
// says how a layer uses the inner one. Mappings have numbers that mean the same
// in all tables.
struct LayerTable {
  int data = 1, inner = 1;  // data x inner are the devices
  // [layers][mappings]
  std::vector<std::vector<LayerCost>> costs;
  // [mappings]: whether layers may have it.
  std::vector<bool> offered;
  // [layers][mapping of the layer before][mapping]: seconds between the two,
  // both ways. Of the first layer unused.
  std::vector<std::vector<std::vector<double>>> boundaries;
};

struct LayerDivision {
  int table = 0;              // among those given
  std::vector<int> mappings;  // [layers]
};

struct LayerPrediction {
  double step = 0;         // seconds: the sum of the four
  double compute = 0;      // products and passes over activations
  double collectives = 0;  // within layers
  double boundaries = 0;   // between layers of unlike mappings
  double gradients = 0;    // what the backward pass does not hide
  double memory = 0;       // bytes of a device
};

// Refuses a table or a division of other sizes than it says, and a mapping that
// is not offered.
absl::StatusOr<LayerPrediction> EvaluateLayers(
    const std::vector<LayerTable>& tables, const LayerDivision& division);

struct LayerChoice {
  LayerDivision division;
  LayerPrediction prediction;
};
struct LayerResult {
  LayerChoice best;
  double gap = 0;  // how much faster another can be at most: 0.01 is 1 %
  // The best of each table, and those with one mapping for all layers: all that
  // fit, fastest first. The first of `meshes` is `best`.
  std::vector<LayerChoice> meshes, uniform;
};

// The fastest division that takes at most `memory` bytes: of each table by
// dynamic programming over the layers, which bounds keep small; exact unless
// `gap` says otherwise. Refuses a limit that nothing fits in, with by how much.
absl::StatusOr<LayerResult> SearchLayers(const std::vector<LayerTable>& tables,
                                         double memory);

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_LAYERS_LAYERS_H_
