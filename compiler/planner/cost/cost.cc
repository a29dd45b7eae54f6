// Models products by tiles and waves, kernels by bytes, and collectives by
// steps and bandwidth (the model by which NCCL chooses its algorithms).
#include "compiler/planner/cost/cost.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <set>
#include <vector>

namespace partita::planner {
namespace {

using core::CollectiveKind;
using core::Precision;

// A block of the output that one unit computes. Small tiles reuse operands less
// and reach less of the peak. Fitted to gemm_efficiency.csv (A100, square
// products).
struct Tile {
  int m, n;
  double share;  // of Device::matmul
};
constexpr Tile kTiles[] = {{256, 128, 1.0}, {128, 256, 1.0}, {128, 128, 0.97},
                           {128, 64, 0.84}, {64, 128, 0.84}, {64, 64, 0.7},
                           {32, 32, 0.35}};
constexpr int kTileDepth = 64;  // along the reduced dimension
constexpr int kMostSplits = 16;

// NCCL 2.19, src/graph/tuning.cc: the time of a call beyond its steps, step
// times relative to the plain protocol (NVLink 3.4, 1.9 and 0.6 us; network 14,
// 4 and 2.7 us), and the share of bandwidth that a protocol leaves.
struct Protocol {
  double base;
  double near_step, far_step;  // on the innermost level; on the others
  double bandwidth;
};
// Of a number that says how many rows come.
constexpr double kCountBytes = 8;

constexpr Protocol kProtocols[] = {{8.4e-6, 1, 1, 1},
                                   {14e-6, 1.9 / 3.4, 4.0 / 14, 0.92},
                                   {6.6e-6, 0.6 / 3.4, 2.7 / 14, 0.5}};
constexpr double kTreeNearStep = 4.0 / 3.4;
constexpr double kTreeBandwidth = 0.92;  // relative to a ring

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

int MembersBelow(const GroupShape& group, int level) {
  int members = 1;
  for (int l = 0; l < level; ++l) members *= group.size[l];
  return members;
}

// A member's bandwidth on a level. Without a switch, it only has its links to
// the other members.
double ReachedBandwidth(const Cluster& cluster, const GroupShape& group,
                        size_t l) {
  const Level& level = cluster.levels[l];
  const double bandwidth = level.bandwidth * level.efficiency;
  if (level.switched) return bandwidth;
  const int units =
      level.devices / (l == 0 ? 1 : cluster.levels[l - 1].devices);
  return bandwidth * (group.size[l] - 1) / std::max(units - 1, 1);
}

// Seconds that the slowest level takes per byte and member in each round of a
// ring. The members in one unit send to the next unit over all of their links.
double RingSecondsPerByte(const Cluster& cluster, const GroupShape& group) {
  double slowest = 0;
  for (size_t l = 0; l < group.size.size(); ++l) {
    if (group.size[l] == 1) continue;
    const double bandwidth =
        ReachedBandwidth(cluster, group, l) * MembersBelow(group, l);
    slowest = std::max(slowest, 1 / bandwidth);
  }
  return slowest;
}

int RoundsOf(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce ? 2 : 1;
}

// Latency with one protocol.
double Latency(const Cluster& cluster, CollectiveKind kind, Algorithm algorithm,
               const GroupShape& group, const Protocol& protocol) {
  double steps = 0;
  int units = 1;  // a ring passes over the lower level once for each
  for (int l = static_cast<int>(group.size.size()) - 1; l >= 0; --l) {
    const double step = cluster.levels[l].latency *
                        (l == 0 ? protocol.near_step : protocol.far_step);
    const int size = group.size[l];
    if (algorithm == Algorithm::kTree)
      steps += l == 0 ? (size - 1) * step * kTreeNearStep
                      : std::ceil(std::log2(size)) * step;
    else if (algorithm == Algorithm::kHierarchical)
      steps += (size - 1) * step;
    else
      steps += units * (size - 1) * step;
    units *= size;
  }
  return protocol.base + RoundsOf(kind) * steps;
}

double BandwidthTime(const Cluster& cluster, CollectiveKind kind,
                     Algorithm algorithm, double bytes,
                     const GroupShape& group) {
  const int n = group.members();
  const double round = RoundsOf(kind) * bytes;
  switch (algorithm) {
    case Algorithm::kRing:
      return round * (n - 1) / n * RingSecondsPerByte(cluster, group);
    case Algorithm::kTree:
      return round * RingSecondsPerByte(cluster, group) / kTreeBandwidth;
    case Algorithm::kHierarchical:
      break;
  }
  double time = 0, rest = round;
  for (size_t l = 0; l < group.size.size(); ++l) {
    if (group.size[l] == 1) continue;
    time += rest * (group.size[l] - 1) / group.size[l] /
            ReachedBandwidth(cluster, group, l);
    rest /= group.size[l];
  }
  return time;
}

constexpr Algorithm kNccls[] = {Algorithm::kRing, Algorithm::kTree};
constexpr Algorithm kAll[] = {Algorithm::kRing, Algorithm::kTree,
                              Algorithm::kHierarchical};

template <typename Algorithms>
CollectiveCost BestOf(const Cluster& cluster, CollectiveKind kind, double bytes,
                      const GroupShape& group, const Algorithms& algorithms) {
  CollectiveCost best{std::numeric_limits<double>::infinity(),
                      Algorithm::kRing};
  for (Algorithm algorithm : algorithms) {
    if (!Offers(kind, algorithm)) continue;
    const double wire = BandwidthTime(cluster, kind, algorithm, bytes, group);
    for (const Protocol& protocol : kProtocols) {
      const double time = Latency(cluster, kind, algorithm, group, protocol) +
                          wire / protocol.bandwidth;
      if (time < best.time) best = {time, algorithm};
    }
  }
  return best;
}

// Every member sends a part to every other member at once. The bytes that cross
// a level are for members beyond the units below it.
double AllToAllTime(const Cluster& cluster, double bytes,
                    const GroupShape& group) {
  const int n = group.members();
  double slowest = 0, latency = 0;
  for (size_t l = 0; l < group.size.size(); ++l) {
    if (group.size[l] == 1) continue;
    const Level& level = cluster.levels[l];
    const double beyond = bytes * (n - MembersBelow(group, l)) / n;
    slowest = std::max(slowest, beyond / (level.bandwidth * level.efficiency));
    latency = std::max(latency, level.latency);
  }
  return kProtocols[0].base + latency + slowest;
}

double PointToPointTime(const Cluster& cluster, int level, double bytes) {
  if (level < 0) return 0;
  if (const RateTable* sends = FindTable(cluster.device.tables, kSendName))
    return sends->Seconds(bytes);
  const Level& link = cluster.levels[level];
  GroupShape pair;
  pair.size.assign(cluster.levels.size(), 1);
  pair.size[level] = 2;
  return link.latency + bytes / ReachedBandwidth(cluster, pair, level);
}

// Null if no product in this precision was measured.
const RateTable* MeasuredProducts(const Device& device, Precision precision,
                                  ProductForm form) {
  if (device.tables.empty()) return nullptr;
  for (ProductForm each :
       {form, ProductForm::kPlain, ProductForm::kRhsTransposed,
        ProductForm::kLhsTransposed, ProductForm::kPacked})
    if (const RateTable* table =
            FindTable(device.tables, ProductName(ToString(precision), each)))
      return table;
  return nullptr;
}

// Null if no similar convolution was measured.
const RateTable* MeasuredConvolution(const Device& device, Precision precision,
                                     const Convolution& conv) {
  if (device.tables.empty()) return nullptr;
  ConvKind kind =
      conv.window_area == 1 ? ConvKind::kPointwise : ConvKind::kWindow;
  if (conv.channels == 1 && conv.window == conv.window_area)
    kind = ConvKind::kDepthwise;
  return FindTable(
      device.tables,
      ConvName(ToString(precision), terms::NameOf(conv.direction), kind));
}

// Name of the collective in the tables. Empty if there is none.
std::string MeasuredKind(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllToAll:
      return terms::NameOf(kind);
    case CollectiveKind::kSendRows:
    case CollectiveKind::kReturnRows:
      return terms::NameOf(CollectiveKind::kAllToAll);
    case CollectiveKind::kExchange:
    case CollectiveKind::kPermute:
      return "exchange";
    case CollectiveKind::kBroadcast:  // callers price it as kAllGather
    case CollectiveKind::kAllSlice:
      break;
  }
  return "";
}

// The table of the smallest measured group that is large enough, or else of the
// largest.
const RateTable* MeasuredCollective(const Device& device, CollectiveKind kind,
                                    int members) {
  if (device.tables.empty()) return nullptr;
  const std::string name = MeasuredKind(kind);
  const RateTable* best = nullptr;
  int best_devices = 0;
  for (const auto& [what, table] : device.tables) {
    if (name.empty() || what.rfind(name + " ", 0) != 0) continue;
    const int devices = std::atoi(what.c_str() + name.size());
    const bool enough = devices >= members, had = best_devices >= members;
    const bool better = enough ? !had || devices < best_devices
                               : !had && devices > best_devices;
    if (best != nullptr && !better) continue;
    best = &table;
    best_devices = devices;
  }
  return best;
}

}  // namespace

std::string ToString(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kRing:
      return "ring";
    case Algorithm::kTree:
      return "tree";
    case Algorithm::kHierarchical:
      return "hierarchical";
  }
  return "";
}

double MatmulTime(const Device& device, Precision precision, int64_t batch,
                  int64_t m, int64_t n, int64_t k, ProductForm form) {
  if (batch <= 0 || m <= 0 || n <= 0 || k <= 0) return 0;
  if (const RateTable* table = MeasuredProducts(device, precision, form))
    return 2.0 * double(batch) * double(m) * double(n) * double(k) /
           table->At({double(m), double(n), double(k)});
  const double peak = device.peak[static_cast<int>(precision)];
  const double unit_rate = peak * device.matmul / device.units;
  const double element =
      precision == Precision::kF8 ? 1 : core::ElementBytes(precision);
  const double traffic =
      batch * ((double(m) * k + double(k) * n) * element +
               double(m) * n * core::ElementBytes(precision));
  double best = std::numeric_limits<double>::infinity();
  for (const Tile& tile : kTiles) {
    const double tiles =
        double(batch) * CeilDiv(m, tile.m) * CeilDiv(n, tile.n);
    for (int split = 1; split <= kMostSplits; split *= 2) {
      const int64_t depth = CeilDiv(CeilDiv(k, split), kTileDepth) * kTileDepth;
      const double waves = std::ceil(tiles * split / device.units);
      // A split reduction writes and reads its partial results once more, in
      // f32.
      const double parts = split == 1 ? 0 : 8.0 * batch * m * n * split;
      const double compute =
          waves * 2 * tile.m * tile.n * depth / (unit_rate * tile.share);
      best = std::min(best,
                      std::max(compute, traffic / (device.memory_bandwidth *
                                                   device.streaming)) +
                          parts / (device.memory_bandwidth * device.streaming));
      if (waves > 1 || depth <= kTileDepth) break;
    }
  }
  return best + device.kernel;
}

Precision ComputedIn(const Device& device, Precision precision) {
  const auto has = [&](Precision each) {
    return device.peak[static_cast<size_t>(each)] > 0;
  };
  if (has(precision)) return precision;
  return precision == Precision::kF8 && has(Precision::kBF16) ? Precision::kBF16
                                                              : Precision::kF32;
}

double ConvolutionTime(const Device& device, Precision precision,
                       const Convolution& conv) {
  const double memory = MemoryBoundTime(device, conv.bytes);
  if (conv.channels <= 0 || conv.window <= 0 || conv.output_positions <= 0)
    return 0;
  const double outputs = double(conv.groups) * double(conv.channels);
  if (const RateTable* table = MeasuredConvolution(device, precision, conv)) {
    std::vector<double> at = {outputs, double(conv.output_positions)};
    if (table->sizes.size() > at.size())
      at.insert(at.begin(),
                double(conv.window / conv.window_area) * double(conv.groups));
    return std::max(memory, 2 * outputs * double(conv.output_positions) *
                                double(conv.window) / table->At(at));
  }
  if (conv.channels == 1) return memory;
  double product = 0;
  switch (conv.direction) {
    case terms::ConvDirection::kForward:
      product =
          MatmulTime(device, precision, conv.groups, conv.output_positions,
                     conv.channels, conv.window, ProductForm::kPacked);
      break;
    case terms::ConvDirection::kInputGrad:
      product =
          MatmulTime(device, precision, conv.groups, conv.output_positions,
                     conv.window, conv.channels, ProductForm::kRhsTransposed);
      break;
    case terms::ConvDirection::kWeightGrad:
      product =
          MatmulTime(device, precision, conv.groups, conv.channels, conv.window,
                     conv.output_positions, ProductForm::kLhsTransposed);
      break;
  }
  return std::max(memory, product);
}

double AttentionTime(const Device& device, Precision precision,
                     double operations) {
  return device.kernel +
         operations / (device.peak[static_cast<int>(precision)] *
                       device.matmul * device.attention);
}

double MemoryBoundTime(const Device& device, double bytes) {
  if (bytes <= 0) return 0;
  if (const RateTable* copies = FindTable(device.tables, kCopyName))
    return copies->Seconds(bytes);
  return device.kernel + bytes / (device.memory_bandwidth * device.streaming);
}

double UpdateTime(const Device& device, double bytes) {
  const RateTable* updates = FindTable(device.tables, kUpdateName);
  return updates != nullptr && bytes > 0 ? updates->Seconds(bytes)
                                         : MemoryBoundTime(device, bytes);
}

double KernelTime(const Device& device, Precision precision, double bytes,
                  double operations, bool backward) {
  const double memory = MemoryBoundTime(device, bytes);
  if (operations <= 0) return memory;
  if (const RateTable* table =
          FindTable(device.tables, AttentionName(backward));
      table != nullptr && bytes > 0)
    return std::max(memory, operations / table->At({operations / bytes}));
  return std::max(memory, AttentionTime(device, precision, operations));
}

int GroupShape::members() const {
  int members = 1;
  for (int s : size) members *= s;
  return members;
}

GroupShape ShapeOfStride(const Cluster& cluster, int stride, int count) {
  GroupShape shape;
  int below = 1;  // members within one unit of the level below
  for (const Level& level : cluster.levels) {
    const int within = std::clamp<int>(level.devices / stride, 1, count);
    const int size = static_cast<int>(CeilDiv(within, below));
    shape.size.push_back(size);
    below *= size;
  }
  // If the stride does not divide a unit, members may be left over.
  if (!shape.size.empty() && below < count)
    shape.size.back() *= static_cast<int>(CeilDiv(count, below));
  return shape;
}

GroupShape ShapeOfRanks(const Cluster& cluster, const std::vector<int>& ranks) {
  GroupShape shape;
  std::set<int> units(ranks.begin(), ranks.end());
  int devices_below = 1;
  for (const Level& level : cluster.levels) {
    std::set<int> above;
    int most = 1, here = 0, last = -1;
    for (int unit : units) {
      const int parent =
          static_cast<int>(int64_t{unit} * devices_below / level.devices);
      here = parent == last ? here + 1 : 1;
      last = parent;
      most = std::max(most, here);
      above.insert(parent);
    }
    shape.size.push_back(most);
    units = std::move(above);
    devices_below = level.devices;
  }
  return shape;
}

bool Offers(CollectiveKind kind, Algorithm algorithm) {
  return algorithm != Algorithm::kTree || kind == CollectiveKind::kAllReduce;
}

double PlainLatency(const Cluster& cluster, CollectiveKind kind,
                    Algorithm algorithm, const GroupShape& group) {
  return Latency(cluster, kind, algorithm, group, kProtocols[0]);
}

double LargeMessageBandwidth(const Cluster& cluster, CollectiveKind kind,
                             Algorithm algorithm, const GroupShape& group) {
  return 1 / BandwidthTime(cluster, kind, algorithm, 1, group);
}

CollectiveCost CostOfCollective(const Cluster& cluster, CollectiveKind kind,
                                double bytes, const GroupShape& group) {
  if (group.members() <= 1 || bytes <= 0) return {};
  if (const RateTable* table =
          MeasuredCollective(cluster.device, kind, group.members()))
    return {table->Seconds(bytes), Algorithm::kRing};
  int top = -1;
  for (size_t l = 0; l < group.size.size(); ++l)
    if (group.size[l] > 1) top = static_cast<int>(l);
  switch (kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
      return BestOf(cluster, kind, bytes, group, kAll);
    case CollectiveKind::kAllToAll:
      return {AllToAllTime(cluster, bytes, group), Algorithm::kRing};
    case CollectiveKind::kSendRows:
    case CollectiveKind::kReturnRows:
      // Devices tell each other how many rows come, then rows move.
      return {AllToAllTime(cluster, kCountBytes * group.members(), group) +
                  AllToAllTime(cluster, bytes, group),
              Algorithm::kRing};
    case CollectiveKind::kExchange:
    case CollectiveKind::kPermute:
      return {PointToPointTime(cluster, top, bytes), Algorithm::kRing};
    case CollectiveKind::kBroadcast:  // callers price it as kAllGather
    case CollectiveKind::kAllSlice:
      break;
  }
  return {};
}

double CollectiveTime(const Cluster& cluster, CollectiveKind kind, double bytes,
                      const GroupShape& group) {
  return CostOfCollective(cluster, kind, bytes, group).time;
}

double NcclTime(const Cluster& cluster, CollectiveKind kind, double bytes,
                const GroupShape& group) {
  if (group.members() <= 1 || bytes <= 0) return 0;
  if (const RateTable* table =
          MeasuredCollective(cluster.device, kind, group.members()))
    return table->Seconds(bytes);
  return BestOf(cluster, kind, bytes, group, kNccls).time;
}

double CollectiveTime(const Cluster& cluster, CollectiveKind kind, double bytes,
                      const std::vector<int>& ranks) {
  return CollectiveTime(cluster, kind, bytes, ShapeOfRanks(cluster, ranks));
}

int LevelOf(const Cluster& cluster, int from, int to) {
  if (from == to) return -1;
  for (size_t l = 0; l < cluster.levels.size(); ++l)
    if (from / cluster.levels[l].devices == to / cluster.levels[l].devices)
      return static_cast<int>(l);
  return static_cast<int>(cluster.levels.size()) - 1;
}

double TransferTime(const Cluster& cluster, int from, int to, double bytes) {
  return PointToPointTime(cluster, LevelOf(cluster, from, to), bytes);
}

}  // namespace partita::planner
