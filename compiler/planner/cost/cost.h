// Seconds that an operation takes on a cluster, as plain functions of sizes.
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

// Time of `batch` products m x k by k x n on one device, without the launch.
// Counts whole tiles in whole waves over the device's units, splits reductions
// when there are few tiles, and is never faster than memory. Uses measured
// times if products of this form, or of any form in this precision, were
// measured. Zero sizes take no time.
double MatmulTime(const Device& device, core::Precision precision,
                  int64_t batch, int64_t m, int64_t n, int64_t k,
                  ProductForm form = ProductForm::kPlain);

// The precision in which the device computes products of these elements. If it
// has no units for them: bf16 in place of f8, else f32.
core::Precision ComputedIn(const Device& device, core::Precision precision);

// A convolution, by the sizes of its forward direction, whichever tensor is
// computed.
struct Convolution {
  terms::ConvDirection direction = terms::ConvDirection::kForward;
  int64_t groups = 1;
  int64_t channels = 0;          // output channels per group
  int64_t window = 0;            // weight elements per output channel
  int64_t window_area = 1;       // of these, per input channel
  int64_t output_positions = 0;  // positions of the output, all images
  double bytes = 0;              // all tensors
};
// Time of the product that the convolution amounts to, never faster than
// memory. Uses measured times if there are any. Depthwise convolutions, too
// thin for tiles, run at the speed of memory.
double ConvolutionTime(const Device& device, core::Precision precision,
                       const Convolution& convolution);

// Time of attention that stores no scores, without the launch. `operations` is
// the number of operations in its products.
double AttentionTime(const Device& device, core::Precision precision,
                     double operations);

// Time of a kernel bound by the bytes it reads and writes, without the launch.
double MemoryBoundTime(const Device& device, double bytes);
// Same as MemoryBoundTime, for a kernel that overwrites what it read.
double UpdateTime(const Device& device, double bytes);

// Time of a generated kernel, without the launch: the longer of its memory time
// and the time of `operations` in attention's products (measured if available).
// `backward` selects attention's gradient.
double KernelTime(const Device& device, core::Precision precision, double bytes,
                  double operations, bool backward);

// The devices of a collective, by level. Within a unit of level l there are
// members in size[l] units of the level below. The product of all sizes is the
// number of members.
struct GroupShape {
  std::vector<int> size;  // [levels]
  int members() const;
};
// Group of the `count` devices base, base + stride, ...
GroupShape ShapeOfStride(const Cluster& cluster, int stride, int count);
// Group of any distinct devices in 0 .. devices - 1. Uneven groups are rounded
// up to the maximum per unit.
GroupShape ShapeOfRanks(const Cluster& cluster, const std::vector<int>& ranks);

enum class Algorithm { kRing, kTree, kHierarchical };
std::string ToString(Algorithm algorithm);

// True if the kind can use the algorithm. Trees only do all-reduces.
bool Offers(core::CollectiveKind kind, Algorithm algorithm);
// The two terms of an algorithm without NCCL's protocols for small messages:
// seconds of an empty message, and bytes/s of a message of unlimited size
// (`bytes` as below).
double PlainLatency(const Cluster& cluster, core::CollectiveKind kind,
                    Algorithm algorithm, const GroupShape& group);
double LargeMessageBandwidth(const Cluster& cluster, core::CollectiveKind kind,
                             Algorithm algorithm, const GroupShape& group);

struct CollectiveCost {
  double time = 0;
  Algorithm algorithm = Algorithm::kRing;
};

// Time of a collective. `bytes` is the larger of a device's input and output:
// the tensor of an all-reduce, the output of an all-gather, the input of a
// reduce-scatter, either of an all-to-all. For an exchange and a permute it is
// the bytes that a device sends. All groups of the same shape are assumed to
// run at once, as bandwidth per device implies. Takes the best algorithm of the
// kind, or measured times for as many devices. A group of one and an all-slice
// take no time.
CollectiveCost CostOfCollective(const Cluster& cluster,
                                core::CollectiveKind kind, double bytes,
                                const GroupShape& group);
double CollectiveTime(const Cluster& cluster, core::CollectiveKind kind,
                      double bytes, const GroupShape& group);
double CollectiveTime(const Cluster& cluster, core::CollectiveKind kind,
                      double bytes, const std::vector<int>& ranks);

// Same as CollectiveTime, with NCCL's algorithms only: rings, and trees for
// all-reduces.
double NcclTime(const Cluster& cluster, core::CollectiveKind kind, double bytes,
                const GroupShape& group);

// Time of a message between two devices. Free from a device to itself.
double TransferTime(const Cluster& cluster, int from, int to, double bytes);
// The innermost level that contains both devices. -1 if they are the same.
int LevelOf(const Cluster& cluster, int from, int to);

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_COST_COST_H_
