// The price of a compiled step: what `partita simulate` prints of an artifact
// and `partita plan` prints of a plan, from the same code.
#ifndef PARTITA_COMPILER_SIMULATOR_PRICE_H_
#define PARTITA_COMPILER_SIMULATOR_PRICE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "compiler/planner/cluster/cluster.h"
#include "compiler/simulator/faults.h"
#include "compiler/simulator/simulate.h"

namespace partita::simulator {

struct StepPrice {
  Simulation simulation;
  int64_t memory_bytes = 0;  // of the device that holds most
  int64_t room_bytes = 0;    // that a device has for programs
  bool fits() const { return memory_bytes <= room_bytes; }
};

// The program must be valid, and rank r of its mesh is device r of the cluster.
// With `spans` the simulation has a timeline. Refuses a cluster of fewer
// devices, and one whose devices lack a precision that the program computes in.
absl::StatusOr<StepPrice> PriceStep(const program::Program& program,
                                    const planner::Cluster& cluster,
                                    const Faults& faults = {},
                                    bool spans = false);

}  // namespace partita::simulator

#endif  // PARTITA_COMPILER_SIMULATOR_PRICE_H_
