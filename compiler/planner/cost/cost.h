// What an operation takes on a cluster, in seconds: plain functions of sizes.
#ifndef PARTITA_COMPILER_PLANNER_COST_COST_H_
#define PARTITA_COMPILER_PLANNER_COST_COST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/core/precision.h"
#include "compiler/core/traffic.h"
#include "compiler/planner/cluster/cluster.h"
#include "dialects/terms/conv_direction.h"

namespace partita::planner {

// `batch` products m x k by k x n on one device, without the launch: whole
// tiles in whole waves over the device's units, reductions split where tiles
// are few, and never faster than memory. Where products of that form, or of any
// in that precision, were measured, what they took. 0 sizes take no time.
double MatmulTime(const Device& device, core::Precision precision,
                  int64_t batch, int64_t m, int64_t n, int64_t k,
                  ProductForm form = ProductForm::kPlain);

// What a device computes products of such elements in: f32 if it has no units
// for them.
core::Precision ComputedIn(const Device& device, core::Precision precision);

// A convolution by the sizes of the forward one, whichever of its three tensors
// is computed.
struct Convolution {
  terms::ConvDirection direction = terms::ConvDirection::kForward;
  int64_t groups = 1;
  int64_t channels = 0;  // that come out of a group
  int64_t window = 0;    // elements of the weight for one of them
  int64_t outside = 1;   // of these, of one channel that goes in
  int64_t places = 0;    // of the output, images included
  double bytes = 0;      // of all tensors
};
// That of the product it amounts to, and never faster than memory; where such
// ones were measured, what they took. Depthwise ones, too thin for tiles, go at
// the speed of memory.
double ConvolutionTime(const Device& device, core::Precision precision,
                       const Convolution& convolution);

// Attention that keeps no scores: `operations` of its products, without the
// launch.
double AttentionTime(const Device& device, core::Precision precision,
                     double operations);

// A kernel that is bound by the bytes it reads and writes, without the launch.
double MemoryBoundTime(const Device& device, double bytes);
// The same of one that writes over what it has read.
double UpdateTime(const Device& device, double bytes);

// A generated kernel, without the launch: the longer of what it reads and
// writes and of `operations` of attention's products, which take what such ones
// were measured to take. `backward`: of attention's gradient.
double KernelTime(const Device& device, core::Precision precision, double bytes,
                  double operations, bool backward);

// Devices that take part in a collective, seen from the levels: within a unit
// of level l there are members in size[l] units of the level below. The product
// is the number of members.
struct GroupShape {
  std::vector<int> size;  // [levels]
  int members() const;
};
// Of the devices base, base + stride, ... of which there are `count`.
GroupShape ShapeOfStride(const Cluster& cluster, int stride, int count);
// Of any devices, each in 0 .. devices - 1, all different. Uneven groups take
// the most per unit.
GroupShape ShapeOfRanks(const Cluster& cluster, const std::vector<int>& ranks);

enum class Algorithm { kRing, kTree, kHierarchical };
std::string ToString(Algorithm algorithm);

// Whether it is one for that kind: trees only add.
bool Offers(core::CollectiveKind kind, Algorithm algorithm);
// The two terms of an algorithm, without NCCL's protocols for small messages:
// seconds of a message of no bytes, and bytes/s of `bytes` (below) without end.
double PlainLatency(const Cluster& cluster, core::CollectiveKind kind,
                    Algorithm algorithm, const GroupShape& group);
double LargeMessageBandwidth(const Cluster& cluster, core::CollectiveKind kind,
                             Algorithm algorithm, const GroupShape& group);

struct CollectiveCost {
  double time = 0;
  Algorithm algorithm = Algorithm::kRing;
};

// `bytes` is the larger of one device's input and output: of an all-reduce its
// tensor, of an all-gather what comes out, of a reduce-scatter what goes in, of
// an all-to-all either; of an exchange and of a permute the bytes that a device
// sends. All groups of the same shape are taken to be at it at once, which is
// what bandwidth per device means. The best of the algorithms that the kind
// has, or what was measured of as many devices; a group of one, and an
// all-slice, take no time.
CollectiveCost CostOfCollective(const Cluster& cluster,
                                core::CollectiveKind kind, double bytes,
                                const GroupShape& group);
double CollectiveTime(const Cluster& cluster, core::CollectiveKind kind,
                      double bytes, const GroupShape& group);
double CollectiveTime(const Cluster& cluster, core::CollectiveKind kind,
                      double bytes, const std::vector<int>& ranks);

// The same by NCCL's algorithms alone, which are rings, and trees for
// all-reduces.
double NcclTime(const Cluster& cluster, core::CollectiveKind kind, double bytes,
                const GroupShape& group);

// From one device to another; to itself it is free.
double TransferTime(const Cluster& cluster, int from, int to, double bytes);
// The innermost level that has both; -1 if they are the same.
int LevelOf(const Cluster& cluster, int from, int to);

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_COST_COST_H_
