// A machine to run on: its devices, and the links between them, level by level.
//
// Units: seconds, bytes, bytes/s, floating-point operations/s.
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
  // FLOP/s of dense products, indexed by Precision; 0: has none.
  std::array<double, core::kPrecisions> peak{};
  double memory = 0;   // bytes
  double context = 0;  // of these, what the driver and communicators take
  double room() const { return memory - context; }
  double memory_bandwidth = 0;
  // Of the host, what a device has to itself: bytes, and bytes/s one way while
  // all devices of the node copy. 0: there is no host beside the device.
  double host_memory = 0;
  double host_bandwidth = 0;
  bool is_gpu = false;  // programs for it are those of GPUs
  int units = 1;        // multiprocessors, or cores: what tiles are dealt to
  double l2 = 0;        // bytes that all units share
  double launch = 0;    // from one kernel's start to the next, at the least
  double kernel = 0;    // of a kernel that does nothing, beyond `launch`
  double matmul = 1;    // of the peak, products of the best shapes, sustained
  double attention = 0.7;  // of products' rate, fused attention
  double streaming = 1;    // of memory_bandwidth, large kernels
  double cycle = 0;  // seconds of a cycle that the compiler estimates kernels
                     // in, on one core; 0: not measured
  bool overlaps = true;  // collectives take none of its time to compute
  RateTables tables;     // what was measured, in place of formulas
};

// Its name, for messages: "this device" of one that has none.
std::string NameOf(const Device& device);
// Of which precisions it has a peak: "f32 and bf16".
std::string PeaksOf(const Device& device);

// All devices within one unit of a level reach each other with its bandwidth;
// units of a level are what the next one connects.
struct Level {
  std::string name;
  int devices = 1;       // in one unit of this level, all levels below included
  double bandwidth = 0;  // of a device, one way, all devices sending at once
  double latency = 0;    // of a step of a ring, and of a message
  double efficiency = 1;  // of bandwidth, large messages
  // Whether any two units reach each other with all of it; else each has a
  // share of its links to each other unit.
  bool switched = true;
};

constexpr int kMostDevices = 1 << 24;

struct Cluster {
  std::string name;
  Device device;
  std::vector<Level> levels;  // innermost first; a device alone has none
  int devices = 1;            // the last level's

  int devices_per_node() const {
    return levels.empty() ? 1 : levels.front().devices;
  }
};

// A built-in cluster: "a100-80-sxm" is one node, "perlmutter" a whole machine,
// "16x a100-80-sxm" 16 devices in as many whole nodes as that takes (fewer than
// a node has: in one node), "2 nodes x a100-80-sxm" both nodes whole. Unknown
// names are refused with those there are.
absl::StatusOr<Cluster> BuiltInCluster(const std::string& text);
std::vector<std::string> BuiltInNames();
// Of a built-in cluster whose racks are a level: for so many devices, that
// level is the last one where one rack has them all, and left out where they
// are no whole racks.
void DropRack(Cluster& cluster, int devices);

// The same machine with that many devices: refuses what is not whole nodes.
absl::StatusOr<Cluster> Resize(Cluster cluster, int devices);

// Reads a cluster.yaml (README.md has an example); `origin` is its name, for
// errors, which say line and column. Refuses what contradicts itself.
absl::StatusOr<Cluster> ReadCluster(const std::string& text,
                                    const std::string& origin);
// What ReadCluster reads back as the same.
std::string WriteCluster(const Cluster& cluster);

// Where `partita measure` describes this machine unless it is told otherwise:
// $XDG_CACHE_HOME, or ~/.cache, and partita/local.yaml.
std::string LocalClusterPath();

// A file that exists, "local" for that of LocalClusterPath, else a built-in
// name.
absl::StatusOr<Cluster> OpenCluster(const std::string& path_or_name);

// Whether all numbers can be: the first that cannot is named.
absl::Status CheckCluster(const Cluster& cluster);

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_CLUSTER_CLUSTER_H_
