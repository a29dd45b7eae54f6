// The price of a compiled step. `partita simulate` prints it for an artifact,
// and `partita plan` for a plan.
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
  int64_t memory_bytes = 0;  // of the fullest device
  int64_t room_bytes = 0;    // available to programs, per device
  // Optimizer states in host memory, or their buffers if they are in files, of
  // the device with most, and a device's share of that memory; 0: unknown, not
  // checked.
  int64_t host_bytes = 0;
  int64_t host_room_bytes = 0;
  // Optimizer states in files, of the device with most. Reading and writing
  // them takes no time in the simulation.
  int64_t files_bytes = 0;
  bool hostFits() const {
    return host_room_bytes == 0 || host_bytes <= host_room_bytes;
  }
  bool fits() const { return memory_bytes <= room_bytes && hostFits(); }
};

// Simulates a step. The program must be valid. Rank r of its mesh is device r
// of the cluster. With `spans` the simulation has a timeline. Refuses a cluster
// with too few devices, and devices without a precision that the program
// computes in.
absl::StatusOr<StepPrice> PriceStep(const program::Program& program,
                                    const planner::Cluster& cluster,
                                    const Faults& faults = {},
                                    bool spans = false);

}  // namespace partita::simulator

#endif  // PARTITA_COMPILER_SIMULATOR_PRICE_H_
