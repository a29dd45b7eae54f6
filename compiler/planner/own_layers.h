// What our compiler makes of a transformer's parts: the functions of
// compiler/driver's programs (`partita compile --dump-dir` shows them), kernel
// by kernel. tests/e2e/two_routes_test.py compiles and compares.
#ifndef PARTITA_COMPILER_PLANNER_OWN_LAYERS_H_
#define PARTITA_COMPILER_PLANNER_OWN_LAYERS_H_

#include "compiler/planner/architecture.h"
#include "compiler/planner/program_sketch.h"

namespace partita::planner {

// A part in both directions. `saved`: what the forward one leaves to the
// backward one, `output`: to the next part. Bytes, of one microbatch on one
// device.
struct OwnPart {
  ProgramSketch forward, backward;
  double saved = 0, output = 0;
};

// Whether the functions below know the model and its division: decoders of the
// kinds kGpt and kLlama, without cp, ZeRO-3, offload, adapters, fp8.
bool KnowsOwn(const Architecture& architecture, const Division& division);

OwnPart OwnLayer(const Architecture& architecture, const Division& division);
OwnPart OwnEmbedding(const Architecture& architecture,
                     const Division& division);
OwnPart OwnHead(const Architecture& architecture, const Division& division);

// Elements of each of a layer's parameters on one device, in the order of their
// gradients; of the embedding's; of the last norm's and the head's own.
std::vector<double> OwnLayerParameters(const Architecture& architecture,
                                       const Division& division);
std::vector<double> OwnEmbeddingParameters(const Architecture& architecture,
                                           const Division& division);
std::vector<double> OwnHeadParameters(const Architecture& architecture,
                                      const Division& division);

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_OWN_LAYERS_H_
