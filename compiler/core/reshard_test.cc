// Known sequences, and random ones executed on small arrays, block by block.
#include "compiler/core/reshard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "compiler/core/reshard_moves.h"

namespace partita::core {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// "x=2 y=8".
Mesh MeshOf(const std::string& text) {
  Mesh mesh;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) {
    const size_t equal = word.find('=');
    mesh.axes.push_back(
        {word.substr(0, equal), std::stoll(word.substr(equal + 1))});
  }
  return mesh;
}

// "x", "y:(1)4".
AxisRef RefOf(const Mesh& mesh, const std::string& text) {
  const size_t colon = text.find(':');
  const int axis = mesh.Find(text.substr(0, colon));
  if (colon == std::string::npos) return WholeAxis(mesh, axis);
  const size_t close = text.find(')');
  return {axis, std::stoll(text.substr(colon + 2, close - colon - 2)),
          std::stoll(text.substr(close + 1))};
}

// One word per dimension: "-" whole, "x,y:(1)4|28"; "+x" is unreduced.
Sharding ShardingOf(const Mesh& mesh, const std::string& text) {
  Sharding sharding;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) {
    std::vector<AxisRef> axes;
    DimSharding dim;
    dim.open = false;
    if (const size_t bar = word.find('|'); bar != std::string::npos) {
      dim.block = std::stoll(word.substr(bar + 1));
      word.resize(bar);
    }
    std::istringstream list(word[0] == '+' ? word.substr(1) : word);
    if (word != "-")
      for (std::string axis; std::getline(list, axis, ',');)
        axes.push_back(RefOf(mesh, axis));
    if (word[0] == '+') {
      sharding.unreduced = axes;
    } else {
      dim.axes = axes;
      sharding.dims.push_back(dim);
    }
  }
  return sharding;
}

std::string Text(const Mesh& mesh, const Collective& step) {
  std::string text =
      ToString(step.kind) + " {" + ToString(mesh, step.axes) + "}";
  if (step.dim >= 0) text += " dim " + std::to_string(step.dim);
  if (step.other_dim >= 0) text += " from " + std::to_string(step.other_dim);
  return text + " -> " + ToString(mesh, step.result);
}

// The steps as text, with the bytes.
std::vector<std::string> Steps(const std::string& mesh_text,
                               const std::vector<int64_t>& shape,
                               const std::string& from, const std::string& to) {
  const Mesh mesh = MeshOf(mesh_text);
  const ReshardPlan plan =
      PlanReshard(mesh, shape, 4, ShardingOf(mesh, from), ShardingOf(mesh, to));
  std::vector<std::string> steps;
  for (const Collective& step : plan.steps)
    steps.push_back(Text(mesh, step) + ": " + std::to_string(step.bytes));
  return steps;
}

// CASES.md B1.
TEST(PlanReshard, GathersMinorAxesAtOnce) {
  EXPECT_THAT(Steps("x=2 y=2 z=2", {16, 2}, "x,y,z -", "x -"),
              ElementsAre("all_gather {y, z} dim 0 -> [{x}, {}]: 48"));
}

// B2.
TEST(PlanReshard, GathersASubAxis) {
  EXPECT_THAT(Steps("x=2 y=8", {16, 4}, "y x", "y:(1)4 x"),
              ElementsAre("all_gather {y:(4)2} dim 0 -> [{y:(1)4}, {x}]: 16"));
}

// B3.
TEST(PlanReshard, SlicesWithoutTraffic) {
  EXPECT_THAT(Steps("x=2 y=2 z=2", {8, 8}, "- -", "x y,z"),
              ElementsAre("all_slice {x} dim 0 -> [{x}, {}]: 0",
                          "all_slice {y, z} dim 1 -> [{x}, {y, z}]: 0"));
}

// B4.
TEST(PlanReshard, MovesAnAxisByAllToAll) {
  EXPECT_THAT(
      Steps("x=2 y=2", {16, 8, 8}, "x y -", "- y x"),
      ElementsAre("all_to_all {x} dim 2 from 0 -> [{}, {y}, {x}]: 512"));
}

// B7: another order of the same devices.
TEST(PlanReshard, PermutesDevices) {
  EXPECT_THAT(Steps("x=2 y=2", {8, 8}, "x,y -", "y,x -"),
              ElementsAre("permute {x, y} -> [{y, x}, {}]: 64"));
  EXPECT_THAT(Steps("x=2 y=2", {8, 8}, "x -", "y -"),
              ElementsAre("permute {x, y} -> [{y}, {}]: 128"));
  EXPECT_THAT(Steps("x=2 y=2", {8, 8}, "x y", "y x"),
              ElementsAre("permute {x, y} -> [{y}, {x}]: 64"));
}

// B8: where Shardy has an all-reduce and a slice, one reduce-scatter.
TEST(PlanReshard, ScattersWhatItReduces) {
  EXPECT_THAT(Steps("x=4 y=2", {8, 16}, "x - +y", "x y"),
              ElementsAre("reduce_scatter {y} dim 1 -> [{x}, {y}]: 64"));
}

// B11: one axis is reduced, the other stays.
TEST(PlanReshard, KeepsWhatStaysUnreduced) {
  EXPECT_THAT(Steps("x=2 y=2", {4}, "- +x,y", "- +x"),
              ElementsAre("all_reduce {y} -> [{}] unreduced={x}: 16"));
}

// B12.
TEST(PlanReshard, OneDimensionOfAGrid) {
  EXPECT_THAT(Steps("x=2", {10, 14}, "x -", "- x"),
              ElementsAre("all_to_all {x} dim 1 from 0 -> [{}, {x}]: 140"));
  EXPECT_THAT(Steps("x=2", {3, 14}, "- -", "- x"),
              ElementsAre("all_slice {x} dim 1 -> [{}, {x}]: 0"));
  EXPECT_THAT(Steps("x=2", {10, 14}, "x -", "- -"),
              ElementsAre("all_gather {x} dim 0 -> [{}, {}]: 280"));
}

// openxla/xla#15207, jax-ml/jax#21562: XLA gathers everything here.
TEST(PlanReshard, TwoAllToAllsInsteadOfAFullGather) {
  EXPECT_THAT(
      Steps("x=4 y=2", {16, 16, 16}, "y - x", "- x,y -"),
      ElementsAre("all_to_all {x} dim 1 from 2 -> [{y}, {x}, {}]: 1536",
                  "all_to_all {y} dim 1 from 0 -> [{}, {x, y}, {}]: 1024"));
}

TEST(PlanReshard, SwapsUnequalAxesWithoutAFullGather) {
  const Mesh mesh = MeshOf("x=4 y=2");
  const ReshardPlan plan = PlanReshard(
      mesh, {4096, 4096}, 4, ShardingOf(mesh, "x y"), ShardingOf(mesh, "y x"));
  int64_t bytes = 0;
  for (const Collective& step : plan.steps) {
    EXPECT_NE(step.kind, CollectiveKind::kAllGather);
    bytes += step.bytes;
  }
  EXPECT_LE(bytes, int64_t{4096} * 4096 * 4 * 9 / 32);
}

TEST(PlanReshard, NothingToDo) {
  EXPECT_THAT(Steps("x=4", {8, 8}, "x -", "x -"), IsEmpty());
  EXPECT_THAT(Steps("x=4", {8, 8}, "x:(1)2,x:(2)2 -", "x|2 -"), IsEmpty());
  EXPECT_THAT(Steps("x=1", {8, 8}, "x -", "- -"), IsEmpty());
}

TEST(PlanReshard, UnevenBlocks) {
  EXPECT_THAT(Steps("x=2", {7, 4}, "x -", "- x"),
              ElementsAre("all_to_all {x} dim 1 from 0 -> [{}, {x}]: 32"));
  // 28 + 21 to 25 + 24: three rows move.
  EXPECT_THAT(Steps("x=2", {49}, "x|28", "x"),
              ElementsAre("exchange {x} dim 0 -> [{x}]: 12"));
  // 4 + 3 over x, then 2 + 2 + 2 + 1.
  EXPECT_THAT(Steps("x=2 y=2", {7}, "x", "x,y"),
              ElementsAre("all_slice {y} dim 0 -> [{x, y}]: 0"));
}

TEST(PlanReshard, BlocksThatDoNotNestAreRealignedFirst) {
  // 7 over 2 is 4 + 3; over 2 x 3 it is 2 + 2 + 2 + 1, that is 6 + 1.
  const Mesh mesh = MeshOf("x=2 y=3");
  const ReshardPlan plan = PlanReshard(
      mesh, {7, 100}, 4, ShardingOf(mesh, "x -"), ShardingOf(mesh, "x,y -"));
  ASSERT_EQ(plan.steps.size(), 2u);
  EXPECT_EQ(Text(mesh, plan.steps[0]), "exchange {x} dim 0 -> [{x}|6, {}]");
  EXPECT_EQ(plan.steps[0].bytes, 2 * 100 * 4);
  EXPECT_EQ(Text(mesh, plan.steps[1]), "all_slice {y} dim 0 -> [{x, y}, {}]");
}

TEST(PlanReshard, PartsThatDoNotNestAreGatheredWhole) {
  EXPECT_THAT(Steps("x=6", {12, 12}, "x:(1)2 -", "x:(1)3 -"),
              ElementsAre("all_gather {x:(1)2} dim 0 -> [{}, {}]: 288",
                          "all_slice {x:(1)3} dim 0 -> [{x:(1)3}, {}]: 0"));
}

TEST(PlanReshard, ReductionIsThatOfTheCaller) {
  const Mesh mesh = MeshOf("x=2");
  const ReshardPlan plan = PlanReshard(mesh, {8}, 4, ShardingOf(mesh, "- +x"),
                                       ShardingOf(mesh, "-"), Reduction::kMax);
  ASSERT_EQ(plan.steps.size(), 1u);
  EXPECT_EQ(plan.steps[0].reduction, Reduction::kMax);
}

TEST(PlanReshard, TheResultIsWrittenAsTheTarget) {
  const Mesh mesh = MeshOf("x=2 y=2");
  Sharding to = ShardingOf(mesh, "x,y -");
  to.dims[1].open = true;
  to.dims[0].SetPriority(3);
  to.replicated.clear();
  const ReshardPlan plan =
      PlanReshard(mesh, {8, 8}, 4, ShardingOf(mesh, "- -"), to);
  ASSERT_EQ(plan.steps.size(), 1u);
  EXPECT_TRUE(plan.steps[0].result.SamePlacement(to));
  EXPECT_TRUE(plan.steps[0].result.dims[1].open);
  EXPECT_EQ(plan.steps[0].result.dims[0].axes[0].priority, 3);
}

TEST(PlanReshard, ManyAxesTakeTheLongWayAtWorst) {
  const Mesh mesh = MeshOf("a=2 b=3 c=2 d=3 e=2 f=3 g=2 h=3");
  const ReshardPlan plan = PlanReshard(mesh, {64, 81, 64, 81}, 4,
                                       ShardingOf(mesh, "a,b c,d e,f g,h"),
                                       ShardingOf(mesh, "h,g f,e d,c b,a"));
  ASSERT_FALSE(plan.steps.empty());
  EXPECT_TRUE(plan.steps.back().result.SamePlacement(
      ShardingOf(mesh, "h,g f,e d,c b,a")));
}

// Executes a sequence. Each device has the rows it owns; whatever else lies in
// its padded block is not a number. A collective may take values from the
// members of its group only.
class Simulator {
 public:
  Simulator(const Mesh& mesh, const std::vector<int64_t>& shape)
      : mesh_(mesh), shape_(shape) {}

  // The element's value is its number, spread over unreduced devices.
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
    const bool reduces = step.kind == CollectiveKind::kAllReduce ||
                         step.kind == CollectiveKind::kReduceScatter;
    std::vector<std::vector<double>> next(devices_.size());
    for (int64_t device = 0; device < mesh_.Size(); ++device) {
      std::vector<int64_t> group = {device};
      if (step.kind != CollectiveKind::kAllSlice)
        group = GroupAlong(mesh_, step.axes, device);
      // The one device that a permutation takes from.
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
        // Sums over what is unreduced make the element's number.
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

  // Not a number where the device does not own the element.
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

  // Axes of one position divide nothing.
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

  // Each kind changes what it may change.
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

  // Whole axes and parts of them, in any order, on any dimension.
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

// Dijkstra's search without bounds of any kind.
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
    // Where bytes count, and where rounds do.
    const Link link = {Pick(2) == 0 ? 1e-9 : 1e-5, 1e9};
    const ReshardPlan plan =
        PlanReshard(mesh, shape, 4, from, to, Reduction::kSum, link);
    const ReshardProblem problem(mesh, shape, 4, from, to, link);
    const double least = CheapestSeconds(problem);
    EXPECT_NEAR(plan.seconds, least, 1e-9 * least)
        << ToString(mesh, from) << " to " << ToString(mesh, to);
    EXPECT_LE(problem.LeastSeconds(problem.start()), least * (1 + 1e-9));
    double longest = 0;
    for (const Move& move : problem.LongWay()) longest += move.seconds;
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
