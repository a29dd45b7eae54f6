// The search over layers by what compiled programs launch: formulas say which
// meshes are worth compiling.
#ifndef PARTITA_COMPILER_DRIVER_PLANNING_SEARCH_LAUNCHES_H_
#define PARTITA_COMPILER_DRIVER_PLANNING_SEARCH_LAUNCHES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/driver/planning/choose_layers.h"
#include "compiler/planner/layers.h"

namespace partita::driver {

// The least that any division of a mesh takes, before those that mix mappings
// are compiled: seconds of a step.
struct MeshPrice {
  int data = 1, inner = 1;
  double seconds = 0;
  bool compiled = false;  // each mapping was; else it is by formulas
};

struct LaunchSearch {
  std::vector<planner::LayerTable> tables;  // of the meshes that were compiled
  // Of `tables`. `uniform` are divisions with one mapping for all layers,
  // `meshes` the best of each mesh that mixes them, compiled, fastest first;
  // `best` is the fastest of both. `gap` is how much longer it takes than
  // `least`.
  planner::LayerResult result;
  std::vector<MeshPrice> prices;  // of all meshes that fit
  double least = 0;      // the least of the prices and of what is compiled
  int not_compiled = 0;  // divisions that were tried and do not compile
};

// Within `memory` bytes of a device. Compiles meshes in the order of their
// formulas, which leave out what dividing adds, until those left cannot be
// faster or enough operations were. Divisions that do not compile are none.
// Refuses a limit that nothing fits in, and a step of which nothing compiles.
absl::StatusOr<LaunchSearch> searchLaunches(const LayersRequest& request,
                                            double memory);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PLANNING_SEARCH_LAUNCHES_H_
