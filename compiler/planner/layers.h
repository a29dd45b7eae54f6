// A model as a list of unlike layers, each divided in its own way: what
// CoAtNets ask for, whose convolutions divide by images or rows and whose
// attentions by heads.
#ifndef PARTITA_COMPILER_PLANNER_LAYERS_H_
#define PARTITA_COMPILER_PLANNER_LAYERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/planner/cluster.h"

namespace partita::planner {

// How a layer uses the inner axis of a mesh of two; the outer one divides the
// batch everywhere. kWhole: not at all, every device computes the same.
enum class Mapping { kBatch, kSpatial, kTensor, kWhole };
constexpr int kMappings = 4;
std::string ToString(Mapping mapping);  // "B", "H", "M N", "-"

// Sizes are of one sample, forward, in operations or elements.
struct LayerSpec {
  std::string name;       // as a plan's scope has it: "stages.0.blocks.1"
  double flops = 0;       // a multiply and an add are two
  double parameters = 0;  // of all samples
  double input = 0;       // what is divided otherwise in front of the layer
  double traffic = 0;     // what kernels beside products read and write
  double kept = 0;        // for the way back
  double halo = 0;        // that kSpatial gets of its neighbours
  double reduced = 0;     // that kTensor adds up
  int64_t rows = 1;       // that kSpatial divides; 1: it cannot
  int64_t heads = 1;      // or groups of channels, that kTensor divides
};

struct LayerProblem {
  std::vector<LayerSpec> layers;
  Cluster cluster;  // all its devices are used
  int64_t batch = 1;
  Precision precision = Precision::kBf16;
  double memory = 0;  // bytes per device; 0: what the device has
};

struct LayerDivision {
  int data = 1, inner = 1;        // data x inner are the devices
  std::vector<Mapping> mappings;  // [layers]
};

struct LayerPrediction {
  double step = 0;     // seconds
  double compute = 0;  // of which products and passes over activations
  double collectives = 0;
  double boundaries = 0;  // between layers of unlike mappings
  double memory = 0;      // bytes of a device
  bool fits = false;
};

// Refuses a division of other sizes than the problem's, and a mapping that a
// layer cannot have.
absl::StatusOr<LayerPrediction> EvaluateLayers(const LayerProblem& problem,
                                               const LayerDivision& division);

struct LayerChoice {
  LayerDivision division;
  LayerPrediction prediction;
};
struct LayerResult {
  LayerChoice best;
  // The best of those with one mapping for all layers; step 0: none fits.
  LayerChoice uniform;
};

// The fastest division that fits: of each mesh by dynamic programming over the
// layers, exact under the memory's limit. Refuses a limit that nothing fits in,
// with by how much.
absl::StatusOr<LayerResult> SearchLayers(const LayerProblem& problem);

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_LAYERS_H_
