// Divides a model whose layers differ, each layer in its own way. CoAtNets need
// this: their convolutions divide by images or rows, their attention by heads.
// The input is numbers, from step_graph.h; the result is a choice.
#ifndef PARTITA_COMPILER_PLANNER_LAYERS_LAYERS_H_
#define PARTITA_COMPILER_PLANNER_LAYERS_LAYERS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace partita::planner {

// Cost of one layer in a step on one device, in seconds and bytes: forward,
// backward and the update of its parameters.
struct LayerCost {
  double compute = 0;
  double collectives = 0;  // exposed: later work waits for them
  double gradients = 0;    // collectives concurrent with the backward pass
  double hiding = 0;       // part of compute that can hide gradients
  double memory = 0;       // parameters, states, gradients, kept activations
};

// Costs of all layers on a mesh of two axes. The outer axis divides the batch
// in every layer. A mapping says how a layer uses the inner axis. The index of
// a mapping means the same in all tables.
struct LayerTable {
  int data = 1, inner = 1;  // data x inner are the devices
  // [layers][mappings]
  std::vector<std::vector<LayerCost>> costs;
  // [mapping]: whether layers may use it.
  std::vector<bool> offered;
  // [layer][mapping of the previous layer][mapping]: seconds between the two,
  // in both directions. Unused for the first layer.
  std::vector<std::vector<std::vector<double>>> boundaries;
};

struct LayerDivision {
  int table = 0;              // index into the given tables
  std::vector<int> mappings;  // [layers]
};

struct LayerPrediction {
  double step = 0;         // seconds: the sum of the next four
  double compute = 0;      // products and passes over activations
  double collectives = 0;  // within layers
  double boundaries = 0;   // between layers with different mappings
  double gradients = 0;    // not hidden by the backward pass
  double memory = 0;       // bytes per device
};

// Predicts a division. Refuses tables and divisions of inconsistent sizes, and
// mappings that are not offered.
absl::StatusOr<LayerPrediction> EvaluateLayers(
    const std::vector<LayerTable>& tables, const LayerDivision& division);

struct LayerChoice {
  LayerDivision division;
  LayerPrediction prediction;
};
struct LayerResult {
  LayerChoice best;
  double gap = 0;  // upper bound on a possible gain: 0.01 is 1 %
  // Divisions that fit, fastest first. `meshes` has the best of each table and
  // begins with `best`. `uniform` has all with a single mapping for all layers.
  std::vector<LayerChoice> meshes, uniform;
};

// The fastest division that takes at most `memory` bytes per device. Dynamic
// programming over the layers of each table, pruned by bounds. Exact unless
// `gap` is above 0. If nothing fits, the error says by how much.
absl::StatusOr<LayerResult> SearchLayers(const std::vector<LayerTable>& tables,
                                         double memory);

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_LAYERS_LAYERS_H_
