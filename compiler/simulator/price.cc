// Runs the simulator with a cluster's cost model, and finds the fullest device.
#include "compiler/simulator/price.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/core/schedule_csv.h"
#include "compiler/simulator/cluster_costs.h"
#include "compiler/simulator/memory.h"
#include "runtime/program/mesh.h"

namespace partita::simulator {
namespace {

// Without a flush, the price of a step is that of a full pipeline.
int StepsOf(const program::Program& program) {
  const auto* text = program.schedule();
  if (text == nullptr || text->size() == 0) return 1;
  auto schedule = core::ReadScheduleCsv(text->str(), "schedule");
  if (!schedule.ok() || schedule->flushes) return 1;
  return 2 * schedule->stages + 1;
}

}  // namespace

absl::StatusOr<StepPrice> PriceStep(const program::Program& program,
                                    const planner::Cluster& cluster,
                                    const Faults& faults, bool spans) {
  const int64_t devices = program::SizeOf(program.mesh());
  if (devices > cluster.devices)
    return absl::InvalidArgumentError(
        absl::StrCat("expected at least ", devices,
                     " devices, which the program runs on, found ",
                     cluster.name, " with ", cluster.devices));
  SimulateOptions options;
  options.steps = StepsOf(program);
  options.spans = spans;
  const ClusterCosts costs(cluster, faults, KernelCyclesOf(program),
                           ParameterUsesOf(program));
  if (absl::Status status = CheckPeaks(program, costs); !status.ok())
    return absl::InvalidArgumentError(
        absl::StrCat("--cluster: ", std::string(status.message())));
  StepPrice price;
  price.simulation = Simulate(program, costs, options);
  for (const DeviceClass& each : price.simulation.classes) {
    const DeviceMemory memory = MemoryOf(program, each.entry);
    price.memory_bytes = std::max(price.memory_bytes, memory.total());
    price.host_bytes = std::max(price.host_bytes, memory.host);
    price.files_bytes = std::max(price.files_bytes, memory.files);
  }
  // Programs cannot use the memory that the driver takes.
  price.room_bytes = static_cast<int64_t>(cluster.device.room());
  price.host_room_bytes = static_cast<int64_t>(cluster.device.host_memory);
  return price;
}

}  // namespace partita::simulator
