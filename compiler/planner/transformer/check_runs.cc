// Checks devices, hosts and precisions that a division needs.
#include "compiler/planner/transformer/check_runs.h"

#include <string>
#include <vector>

namespace partita::planner {

absl::Status CheckRuns(const Architecture& architecture,
                       const Division& division, const Cluster& cluster) {
  if (absl::Status status = CheckDivision(architecture, division); !status.ok())
    return status;
  if (division.devices > cluster.devices)
    return absl::InvalidArgumentError(
        "expected at most the " + std::to_string(cluster.devices) +
        " devices of " + cluster.name + ", found " +
        std::to_string(division.devices));
  if (division.offload && cluster.device.host_bandwidth <= 0)
    return absl::InvalidArgumentError(
        "offload: expected a device with a host_bandwidth, found none of " +
        NameOf(cluster.device));
  std::vector<core::Precision> needed = {division.precision};
  // Attention and the head compute in 16 bits.
  if (division.precision == core::Precision::kF8)
    needed.push_back(core::Precision::kBF16);
  for (const core::Precision precision : needed)
    if (cluster.device.peak[static_cast<int>(precision)] <= 0)
      return absl::InvalidArgumentError(
          NameOf(cluster.device) + " has no " + ToString(precision) +
          " matrix products, it has a peak of " + PeaksOf(cluster.device) +
          ": take such a precision, or add one of " + ToString(precision) +
          " to the device's peak in a cluster file");
  return absl::OkStatus();
}

}  // namespace partita::planner
