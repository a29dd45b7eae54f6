// Opens the file that `partita measure` wrote.
#include "compiler/driver/commands/measured_machine.h"

#include <string>

#include "llvm/Support/FileSystem.h"

namespace partita::driver {

std::optional<planner::Cluster> measuredMachine() {
  const std::string path = planner::LocalClusterPath();
  if (!llvm::sys::fs::exists(path)) return std::nullopt;
  absl::StatusOr<planner::Cluster> cluster = planner::OpenCluster(path);
  if (!cluster.ok() || cluster->device.is_gpu) return std::nullopt;
  return *std::move(cluster);
}

}  // namespace partita::driver
