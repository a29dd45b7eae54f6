// Checks clusters, and opens them from files or built-in names.
#include "compiler/planner/cluster/cluster.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "compiler/plan/text.h"

namespace partita::planner {
namespace {

using absl::InvalidArgumentError;
using absl::Status;
using absl::StatusOr;

constexpr double kGiga = 1e9;

Status Check(const std::string& what, double value, bool zero_too = false) {
  if (std::isfinite(value) && (value > 0 || (zero_too && value == 0)))
    return absl::OkStatus();
  std::ostringstream text;
  text << what << ": expected a number above 0, found " << value;
  return InvalidArgumentError(text.str());
}

Status CheckLevels(const Cluster& cluster) {
  int below = 1;
  for (const Level& level : cluster.levels) {
    if (level.devices < below || level.devices % below != 0)
      return InvalidArgumentError("level '" + level.name +
                                  "': expected its devices to be whole units "
                                  "of " +
                                  std::to_string(below) +
                                  " of the level before, found " +
                                  std::to_string(level.devices));
    below = level.devices;
    const std::string where = "level '" + level.name + "', ";
    for (Status status : {Check(where + "bandwidth", level.bandwidth),
                          Check(where + "efficiency", level.efficiency),
                          Check(where + "latency", level.latency, true)})
      if (!status.ok()) return status;
    if (level.efficiency > 2)
      return InvalidArgumentError(where +
                                  "efficiency: expected a part of the "
                                  "bandwidth, 0 to 1 (or little more, where "
                                  "the network adds), found " +
                                  std::to_string(level.efficiency));
  }
  if (below != cluster.devices)
    return InvalidArgumentError("expected the last level to have all " +
                                std::to_string(cluster.devices) +
                                " devices, found " + std::to_string(below));
  return absl::OkStatus();
}

}  // namespace

std::string NameOf(const Device& device) {
  return device.name.empty() ? "this device" : device.name;
}

std::string PeaksOf(const Device& device) {
  std::vector<std::string> names;
  for (int p = 0; p < core::kPrecisions; ++p)
    if (device.peak[p] > 0) names.push_back(core::kPrecisionNames[p]);
  std::string text;
  for (size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
  return text;
}

Status CheckCluster(const Cluster& cluster) {
  const Device& device = cluster.device;
  if (cluster.devices < 1 || cluster.devices > kMostDevices)
    return InvalidArgumentError(
        "expected 1 to " + std::to_string(kMostDevices) + " devices, found " +
        std::to_string(cluster.devices));
  if (device.units < 1)
    return InvalidArgumentError("device, units: expected 1 or more, found " +
                                std::to_string(device.units));
  for (Status status :
       {Check("device, memory", device.memory),
        Check("device, context", device.context, true),
        Check("device, host_memory", device.host_memory, true),
        Check("device, host_bandwidth", device.host_bandwidth, true),
        Check("device, memory_bandwidth", device.memory_bandwidth),
        Check("device, matmul", device.matmul),
        Check("device, attention", device.attention),
        Check("device, streaming", device.streaming),
        Check("device, launch", device.launch, true),
        Check("device, kernel", device.kernel, true),
        Check("device, l2", device.l2, true)})
    if (!status.ok()) return status;
  if (device.room() <= 0)
    return InvalidArgumentError(
        "device, memory: expected more than the " +
        std::to_string(device.context / kGiga) +
        " GB of context, which the driver and communicators take, found " +
        std::to_string(device.memory / kGiga) + " GB");
  for (double share : {device.matmul, device.attention, device.streaming})
    if (share > 1)
      return InvalidArgumentError(
          "device: expected matmul, attention and streaming to be parts of "
          "the peak, 0 to 1, found " +
          std::to_string(share));
  bool any = false;
  for (int p = 0; p < core::kPrecisions; ++p) {
    const std::string what =
        std::string("device, peak of ") + core::kPrecisionNames[p];
    if (Status status = Check(what, device.peak[p], true); !status.ok())
      return status;
    any |= device.peak[p] > 0;
  }
  if (!any)
    return InvalidArgumentError("device: expected a peak of some precision");
  return CheckLevels(cluster);
}

StatusOr<Cluster> Resize(Cluster cluster, int devices) {
  if (devices < 1)
    return InvalidArgumentError("expected 1 device or more, found " +
                                std::to_string(devices));
  while (cluster.levels.size() > 1 &&
         cluster.levels[cluster.levels.size() - 2].devices >= devices)
    cluster.levels.pop_back();
  if (cluster.levels.size() > 1) {
    const Level& below = cluster.levels[cluster.levels.size() - 2];
    if (devices % below.devices != 0)
      return InvalidArgumentError(
          "expected whole units of " + std::to_string(below.devices) +
          " devices (" + below.name + "), found " + std::to_string(devices));
  }
  if (devices == 1) cluster.levels.clear();
  if (!cluster.levels.empty()) cluster.levels.back().devices = devices;
  cluster.devices = devices;
  return cluster;
}

std::string LocalClusterPath() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const std::string folder = cache != nullptr && *cache != '\0' ? cache
                             : home != nullptr ? std::string(home) + "/.cache"
                                               : std::string("/tmp");
  return folder + "/partita/local.yaml";
}

StatusOr<Cluster> OpenCluster(const std::string& path_or_name) {
  const bool local = path_or_name == "local";
  const std::string path = local ? LocalClusterPath() : path_or_name;
  std::error_code none;
  if (std::filesystem::is_regular_file(path, none)) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    if (file.good()) return ReadCluster(text.str(), path);
  }
  if (local)
    return absl::NotFoundError("expected this machine's measurements in " +
                               path +
                               ", found none: run `partita measure` first");
  const bool is_path = path.find('/') != std::string::npos ||
                       path.find(".y") != std::string::npos;
  if (!is_path) return BuiltInCluster(path);
  return absl::NotFoundError(
      "expected a cluster.yaml that can be read, found " + plan::Quote(path) +
      ", which cannot");
}

}  // namespace partita::planner
