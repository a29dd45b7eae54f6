// A machine to run on: its devices, and the links between them, level by level.
//
// Units are seconds, bytes, bytes/s and floating-point operations/s (FLOP/s).
#ifndef PARTITA_COMPILER_PLANNER_CLUSTER_CLUSTER_H_
#define PARTITA_COMPILER_PLANNER_CLUSTER_CLUSTER_H_

#include <array>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/core/precision.h"
#include "compiler/planner/cluster/measured.h"

namespace partita::planner {

struct Device {
  std::string name;
  // Dense peak FLOP/s, indexed by Precision. 0: unsupported.
  std::array<double, core::kPrecisions> peak{};
  double memory = 0;   // bytes
  double context = 0;  // part of `memory` used by driver and communicators
  double room() const { return memory - context; }
  double memory_bandwidth = 0;
  // A device's share of its host: bytes, and bytes/s one way while all devices
  // of the node copy. 0: no host memory beside the device.
  double host_memory = 0;
  double host_bandwidth = 0;
  bool is_gpu = false;     // runs GPU programs
  int units = 1;           // multiprocessors or cores
  double l2 = 0;           // bytes, shared by all units
  double launch = 0;       // minimum time between the starts of two kernels
  double kernel = 0;       // time of an empty kernel beyond `launch`
  double matmul = 1;       // sustained share of the peak, large products
  double attention = 0.7;  // share of the product rate, fused attention
  double streaming = 1;    // share of memory_bandwidth, large kernels
  double cycle = 0;        // seconds per estimated kernel cycle; 0: unknown
  bool overlaps = true;    // collectives do not slow computing
  RateTables tables;       // measured rates, used instead of formulas
};

// The device's name for messages, or "this device" if it has none.
std::string NameOf(const Device& device);
// The precisions that have a peak, e.g. "f32 and bf16".
std::string PeaksOf(const Device& device);

// One level of links, e.g. NVLink. All devices within one unit of a level reach
// each other at its bandwidth. The next level connects the units of this one.
struct Level {
  std::string name;
  int devices = 1;        // per unit of this level, over all levels below
  double bandwidth = 0;   // per device, one way, all devices sending
  double latency = 0;     // of a ring step and of a message
  double efficiency = 1;  // reached share of bandwidth, large messages
  // True if any two units can use the full bandwidth. If false, a unit's links
  // are split evenly among the other units.
  bool switched = true;
};

constexpr int kMostDevices = 1 << 24;

struct Cluster {
  std::string name;
  Device device;
  std::vector<Level> levels;  // innermost first; empty for one device
  int devices = 1;            // as in the last level

  int devices_per_node() const {
    return levels.empty() ? 1 : levels.front().devices;
  }
};

// A built-in cluster. "a100-80-sxm" is one node, and "perlmutter" a whole
// machine. "16x a100-80-sxm" is 16 devices in the whole nodes they need, or in
// part of one node. "2 nodes x a100-80-sxm" is two whole nodes. Refuses unknown
// names and lists the known ones.
absl::StatusOr<Cluster> BuiltInCluster(const std::string& text);
std::vector<std::string> BuiltInNames();
// Adapts the rack level of a built-in cluster to `devices` devices. If one rack
// holds all of them, the rack becomes the last level. If they do not fill whole
// racks, the level is removed.
void DropRack(Cluster& cluster, int devices);

// The same machine with `devices` devices. Refuses a number that does not fill
// whole nodes.
absl::StatusOr<Cluster> Resize(Cluster cluster, int devices);

// Reads a cluster.yaml (README.md has an example). Errors name `origin`, line
// and column. Refuses contradictions.
absl::StatusOr<Cluster> ReadCluster(const std::string& text,
                                    const std::string& origin);
// Writes text that ReadCluster reads back as the same cluster.
std::string WriteCluster(const Cluster& cluster);

// The default output file of `partita measure`: partita/local.yaml in
// $XDG_CACHE_HOME or ~/.cache.
std::string LocalClusterPath();

// Opens an existing file, or LocalClusterPath() for "local", or a built-in
// name.
absl::StatusOr<Cluster> OpenCluster(const std::string& path_or_name);

// Refuses impossible numbers and names the first one.
absl::Status CheckCluster(const Cluster& cluster);

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_CLUSTER_CLUSTER_H_
