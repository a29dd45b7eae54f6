// Executes random sequences on small arrays, block by block, and compares their
// cost with the cheapest possible.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "compiler/core/reshard.h"
#include "compiler/core/reshard_moves.h"
#include "compiler/core/test_shardings.h"

namespace partita::core {
namespace {

// Executes a sequence. Each device has the rows it owns; the padding of its
// block is NaN. A collective may take values only from members of its group.
class Simulator {
 public:
  Simulator(const Mesh& mesh, const std::vector<int64_t>& shape)
      : mesh_(mesh), shape_(shape) {}

  // An element's value is its number, spread over unreduced devices.
  void Fill(const Sharding& sharding) {
    sharding_ = sharding;
    devices_.assign(mesh_.Size(), {});
    for (int64_t device = 0; device < mesh_.Size(); ++device)
      devices_[device] = Build(sharding, device, [&](int64_t number) {
        return Summand(sharding, device, number);
      });
  }

  void Apply(const Collective& step) {
    CheckForm(step);
    CheckCover(step);
    const bool reduces = step.kind == CollectiveKind::kAllReduce ||
                         step.kind == CollectiveKind::kReduceScatter;
    std::vector<std::vector<double>> next(devices_.size());
    for (int64_t device = 0; device < mesh_.Size(); ++device) {
      std::vector<int64_t> group = {device};
      if (step.kind != CollectiveKind::kAllSlice)
        group = GroupAlong(mesh_, step.axes, device);
      // A permutation takes from one device.
      if (step.kind == CollectiveKind::kPermute)
        group = {group.at(IndexAlong(mesh_, step.to_axes, device))};
      next[device] = Build(step.result, device, [&](int64_t number) {
        double sum = 0, found = 0;
        for (int64_t member : group) {
          const double value = Read(member, number);
          if (std::isnan(value)) continue;
          sum += value;
          ++found;
          if (!reduces) break;
        }
        EXPECT_EQ(found, reduces ? group.size() : 1) << Text(mesh_, step);
        return sum;
      });
    }
    devices_ = next;
    sharding_ = step.result;
  }

  void Check(const Sharding& to) const {
    EXPECT_TRUE(sharding_.SamePlacement(to));
    for (int64_t device = 0; device < mesh_.Size(); ++device)
      Build(to, device, [&](int64_t number) {
        // Sums over unreduced axes give the element's number.
        double sum = 0;
        for (int64_t member : GroupAlong(mesh_, to.unreduced, device))
          sum += Read(member, number);
        EXPECT_EQ(sum, number) << "device " << device;
        return sum;
      });
  }

 private:
  double Summand(const Sharding& sharding, int64_t device,
                 int64_t number) const {
    if (sharding.unreduced.empty()) return static_cast<double>(number);
    const int64_t index = IndexAlong(mesh_, sharding.unreduced, device);
    const int64_t count = SizeOf(sharding.unreduced);
    return index == 0 ? number - 7.0 * (count - 1) : 7.0;
  }

  template <typename F>
  std::vector<double> Build(const Sharding& sharding, int64_t device,
                            const F& value) const {
    const std::vector<int64_t> local = LocalShape(shape_, sharding);
    int64_t count = 1;
    for (int64_t rows : local) count *= rows;
    std::vector<double> data(count, std::nan(""));
    for (int64_t i = 0; i < count; ++i) {
      int64_t rest = i, number = 0, stride = 1;
      bool inside = true;
      for (size_t d = shape_.size(); d-- > 0;) {
        const Interval own =
            OwnedRows(mesh_, shape_[d], sharding.dims[d], device);
        const int64_t row = own.begin + rest % local[d];
        inside = inside && row < own.end;
        number += row * stride;
        stride *= shape_[d];
        rest /= local[d];
      }
      if (inside) data[i] = value(number);
    }
    return data;
  }

  // NaN if the device does not own the element.
  double Read(int64_t device, int64_t number) const {
    const std::vector<int64_t> local = LocalShape(shape_, sharding_);
    int64_t index = 0, stride = 1;
    for (size_t d = shape_.size(); d-- > 0;) {
      const Interval own =
          OwnedRows(mesh_, shape_[d], sharding_.dims[d], device);
      const int64_t row = number % shape_[d];
      if (row < own.begin || row >= own.end) return std::nan("");
      index += (row - own.begin) * stride;
      stride *= local[d];
      number /= shape_[d];
    }
    return devices_[device][index];
  }

  static std::vector<AxisRef> Join(const Mesh& mesh, std::vector<AxisRef> a,
                                   const std::vector<AxisRef>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return Plain(mesh, a);
  }

  // Axes of size 1 divide nothing.
  static std::vector<AxisRef> Plain(const Mesh& mesh,
                                    std::vector<AxisRef> axes) {
    axes.erase(std::remove_if(axes.begin(), axes.end(),
                              [](const AxisRef& a) { return a.size == 1; }),
               axes.end());
    return Normalize(mesh, axes);
  }

  // The devices of the first device's group.
  std::set<int64_t> GroupOf(const std::vector<AxisRef>& axes) const {
    const std::vector<int64_t> group = GroupAlong(mesh_, axes, 0);
    return {group.begin(), group.end()};
  }

  // Checks the condition of the verifiers of dist's operations: the blocks of
  // one side cover the rows of the other, padding included.
  void CheckCover(const Collective& step) const {
    const std::vector<int64_t> before = LocalShape(shape_, sharding_),
                               after = LocalShape(shape_, step.result);
    const int64_t devices = SizeOf(step.axes);
    const int gathered =
        step.kind == CollectiveKind::kAllGather ? step.dim : step.other_dim;
    const bool cuts = step.kind == CollectiveKind::kAllSlice ||
                      step.kind == CollectiveKind::kReduceScatter ||
                      step.kind == CollectiveKind::kAllToAll;
    if (cuts) EXPECT_LE(before[step.dim], devices * after[step.dim]);
    if (gathered >= 0) EXPECT_LE(after[gathered], devices * before[gathered]);
  }

  // Checks that each kind changes only what it may change.
  void CheckForm(const Collective& step) const {
    const auto axes = [&](const Sharding& s, int dim) {
      return Plain(mesh_, s.dims[dim].axes);
    };
    const Sharding &before = sharding_, &after = step.result;
    for (int d = 0; d < static_cast<int>(shape_.size()); ++d) {
      if (d == step.dim || d == step.other_dim ||
          step.kind == CollectiveKind::kPermute)
        continue;
      EXPECT_EQ(axes(before, d), axes(after, d));
      EXPECT_EQ(BlockOf(shape_[d], before.dims[d]),
                BlockOf(shape_[d], after.dims[d]));
    }
    switch (step.kind) {
      case CollectiveKind::kAllGather:
        EXPECT_EQ(axes(before, step.dim),
                  Join(mesh_, after.dims[step.dim].axes, step.axes));
        break;
      case CollectiveKind::kAllToAll:
        EXPECT_EQ(axes(before, step.other_dim),
                  Join(mesh_, after.dims[step.other_dim].axes, step.axes));
        [[fallthrough]];
      case CollectiveKind::kReduceScatter:
      case CollectiveKind::kAllSlice:
        EXPECT_EQ(axes(after, step.dim),
                  Join(mesh_, before.dims[step.dim].axes, step.axes));
        break;
      case CollectiveKind::kExchange:
        EXPECT_EQ(axes(before, step.dim), axes(after, step.dim));
        break;
      case CollectiveKind::kPermute:
        EXPECT_EQ(LocalShape(shape_, before), LocalShape(shape_, after));
        EXPECT_EQ(GroupOf(step.axes), GroupOf(step.to_axes));
        break;
      case CollectiveKind::kAllReduce:
        EXPECT_EQ(SizeOf(before.unreduced),
                  SizeOf(after.unreduced) * SizeOf(step.axes));
        break;
      case CollectiveKind::kBroadcast:
      case CollectiveKind::kSendRows:
      case CollectiveKind::kReturnRows:
        ADD_FAILURE() << "no step of a reshard broadcasts or sends rows";
        break;
    }
  }

  Mesh mesh_;
  std::vector<int64_t> shape_;
  Sharding sharding_;
  std::vector<std::vector<double>> devices_;
};

class RandomReshards : public testing::TestWithParam<const char*> {
 protected:
  int64_t Pick(int64_t count) { return random_() % count; }

  // Returns a random sharding of whole axes and parts, in any order, on any
  // dimension.
  Sharding Any(const Mesh& mesh, const std::vector<int64_t>& shape,
               const std::vector<AxisRef>& unreduced) {
    std::vector<AxisRef> parts;
    for (int i = 0; i < static_cast<int>(mesh.axes.size()); ++i) {
      const int64_t size = mesh.axes[i].size;
      if (size % 2 == 0 && size > 2 && Pick(2) == 0) {
        parts.push_back({i, 1, 2});
        parts.push_back({i, 2, size / 2});
      } else {
        parts.push_back(WholeAxis(mesh, i));
      }
    }
    std::shuffle(parts.begin(), parts.end(), random_);
    Sharding sharding = Replicated(static_cast<int>(shape.size()));
    sharding.unreduced = unreduced;
    for (const AxisRef& part : parts) {
      const int64_t dim = Pick(shape.size() + 1);
      if (dim == static_cast<int64_t>(shape.size())) continue;
      if (!OverlapAny(part, unreduced)) sharding.dims[dim].axes.push_back(part);
    }
    for (size_t i = 0; i < shape.size(); ++i) {
      DimSharding& dim = sharding.dims[i];
      if (SizeOf(dim.axes) > 1 && Pick(4) == 0)
        dim.block = BlockOf(shape[i], dim) + Pick(3);
    }
    CanonicalizeBlocks(shape, sharding);
    return sharding;
  }

  // NOLINTNEXTLINE(bugprone-random-generator-seed): every run the same
  std::mt19937 random_{5};
};

TEST_P(RandomReshards, EndWhereTheyShouldWithTheRightValues) {
  const Mesh mesh = MeshOf(GetParam());
  for (int round = 0; round < 300; ++round) {
    std::vector<int64_t> shape(1 + Pick(3));
    for (int64_t& size : shape) size = 1 + Pick(9);
    std::vector<AxisRef> before, after;
    for (int i = 0; i < static_cast<int>(mesh.axes.size()); ++i)
      if (Pick(4) == 0) {
        before.push_back(WholeAxis(mesh, i));
        if (Pick(3) == 0) after.push_back(before.back());
      }
    const Sharding from = Any(mesh, shape, before);
    const Sharding to = Any(mesh, shape, after);
    std::string trace = ToString(mesh, from) + " to " + ToString(mesh, to);
    for (int64_t size : shape) trace += " " + std::to_string(size);
    const ReshardPlan plan = PlanReshard(mesh, shape, 4, from, to);
    for (const Collective& step : plan.steps)
      trace += "\n  " + Text(mesh, step);
    SCOPED_TRACE(trace);
    Simulator simulator(mesh, shape);
    simulator.Fill(from);
    for (const Collective& step : plan.steps) simulator.Apply(step);
    if (plan.steps.empty()) {
      EXPECT_EQ(LocalShape(shape, from), LocalShape(shape, to));
      simulator.Fill(to);
    }
    simulator.Check(to);
    if (HasFailure()) return;
  }
}

// Dijkstra's search without any bounds.
double CheapestSeconds(const ReshardProblem& problem) {
  std::map<std::string, double> done;
  std::multimap<double, Layout> queue = {{0, problem.start()}};
  while (!queue.empty()) {
    const double seconds = queue.begin()->first;
    const Layout layout = queue.begin()->second;
    queue.erase(queue.begin());
    if (!done.emplace(layout.Key(), seconds).second) continue;
    if (layout == problem.goal()) return seconds;
    for (const Move& move : problem.MovesFrom(layout))
      queue.emplace(seconds + move.seconds, move.result);
  }
  return -1;
}

TEST_P(RandomReshards, AreTheCheapest) {
  const Mesh mesh = MeshOf(GetParam());
  for (int round = 0; round < 100; ++round) {
    std::vector<int64_t> shape(1 + Pick(3));
    for (int64_t& size : shape) size = 1 + Pick(40) * Pick(40);
    std::vector<AxisRef> unreduced;
    if (Pick(3) == 0) unreduced.push_back(WholeAxis(mesh, 0));
    const Sharding from = Any(mesh, shape, unreduced);
    const Sharding to = Any(mesh, shape, {});
    // Either bytes or rounds dominate the cost.
    const Link link = {Pick(2) == 0 ? 1e-9 : 1e-5, 1e9};
    const ReshardPlan plan =
        PlanReshard(mesh, shape, 4, from, to, Reduction::kSum, link);
    const ReshardProblem problem(mesh, shape, 4, from, to, link);
    const double least = CheapestSeconds(problem);
    EXPECT_NEAR(plan.seconds, least, 1e-9 * least)
        << ToString(mesh, from) << " to " << ToString(mesh, to);
    EXPECT_LE(problem.MinSeconds(problem.start()), least * (1 + 1e-9));
    double longest = 0;
    for (const Move& move : problem.FallbackMoves()) longest += move.seconds;
    EXPECT_GE(longest * (1 + 1e-9), least);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Meshes, RandomReshards,
                         testing::Values("x=2", "x=3", "x=2 y=2", "x=2 y=3",
                                         "x=4 y=2", "x=8", "x=2 y=2 z=2", "x=6",
                                         "x=1 y=5"));

}  // namespace
}  // namespace partita::core
