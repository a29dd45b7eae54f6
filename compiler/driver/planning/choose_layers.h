// partita plan of a model whose layers differ: the planner's choice for people,
// for programs, and as a file.
#ifndef PARTITA_COMPILER_DRIVER_PLANNING_CHOOSE_LAYERS_H_
#define PARTITA_COMPILER_DRIVER_PLANNING_CHOOSE_LAYERS_H_

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/plan/plan.h"
#include "compiler/planner/step_graph.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace partita::driver {

struct LayersRequest {
  planner::StepGraph step;
  // What each device launches of it under a mapping on a mesh; nothing where it
  // cannot be compiled so.
  std::function<std::optional<planner::StepLaunches>(
      const planner::StepMapping& mapping, int data, int inner)>
      launches;
  // The same of a step under a plan.
  std::function<std::optional<std::vector<planner::StepLaunch>>(
      const plan::Plan& plan)>
      step_launches;
  planner::Cluster cluster;  // all its devices are used
  planner::Precision precision = planner::Precision::kF32;
  double memory = 0;    // bytes per device; 0: what the device has
  std::string output;   // the plan file; empty: none is written
  std::string because;  // why it is divided by layers; empty: it was asked for
};

// "text" of the plan, "division", "step_seconds", "memory_bytes", "parts",
// "because", "layers" with the mapping and the costs of each, "alternatives"
// with a "text" each, all unlike: one mapping for all layers, and other meshes;
// "meshes" with the "least_seconds" of any division of each, and whether it is
// "compiled" or by formulas; "least_seconds" of all, and the "gap" by which
// step_seconds is more; how many divisions are "not_compiled", as they cannot
// be. The file is written. Refuses what fits no device, and what does not
// compile.
absl::StatusOr<llvm::json::Value> chooseLayers(const LayersRequest& request);
void printLayers(const llvm::json::Value& value, llvm::raw_ostream& stream);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PLANNING_CHOOSE_LAYERS_H_
