#include "compiler/simulator/simulate.h"

#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "compiler/core/schedule_generators.h"
#include "compiler/core/timetable.h"
#include "compiler/simulator/program_builder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace partita::simulator {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;

constexpr double kTiny = 1e-9;

double SumOf(const DeviceTimes& times) {
  return times.compute + times.collectives + times.transfers + times.idle;
}

TEST(SimulateTest, ReceivesWaitSendsDoNot) {
  ProgramBuilder builder({{"pipe", 2}}, 0);
  builder.Function("main");
  builder.Work("a");
  builder.Send(1, 8);
  builder.Work("b");
  builder.EntryMain();
  builder.Function("main.1");
  builder.Receive(0, 8);
  builder.Work("c");
  builder.EntryMain();
  NamedCosts costs;
  costs.seconds = {{"a", 3}, {"b", 1}, {"c", 2}};
  costs.transfer = 0.5;
  const Simulation found = Simulate(builder.Build(), costs, {1, true});
  EXPECT_DOUBLE_EQ(found.step, 5.5);
  ASSERT_EQ(found.times.size(), 2u);
  EXPECT_DOUBLE_EQ(found.times[0].compute, 4);
  EXPECT_DOUBLE_EQ(found.times[0].idle, 1.5);
  EXPECT_DOUBLE_EQ(found.times[1].compute, 2);
  EXPECT_DOUBLE_EQ(found.times[1].transfers, 0.5);
  EXPECT_DOUBLE_EQ(found.times[1].idle, 3);
  EXPECT_DOUBLE_EQ(found.Bubble(), 4.5 / 11);
  EXPECT_DOUBLE_EQ(found.Exposed(), 0.5 / 11);
  // Rank 0: a, the transfer, b. Rank 1: wait, receive, c.
  ASSERT_EQ(found.spans.size(), 6u);
  for (const Span& span : found.spans) {
    if (span.kind != Span::Kind::kTransfer) continue;
    EXPECT_EQ(span.device_class, 0);
    EXPECT_DOUBLE_EQ(span.start, 3);
    EXPECT_DOUBLE_EQ(span.end, 3.5);
  }
}

TEST(SimulateTest, ALinkSendsOneAfterTheOther) {
  ProgramBuilder builder({{"pipe", 2}}, 0);
  builder.Function("main");
  builder.Send(1, 8);
  builder.Send(1, 8);
  builder.EntryMain();
  builder.Function("main.1");
  builder.Receive(0, 8);
  builder.Receive(0, 8);
  builder.EntryMain();
  NamedCosts costs;
  costs.transfer = 2;
  const Simulation found = Simulate(builder.Build(), costs);
  EXPECT_DOUBLE_EQ(found.step, 4);
  EXPECT_DOUBLE_EQ(found.times[1].transfers, 4);
}

// A layer with a sum over `tensor`, called twice, then a sum over both axes.
const program::Program& BuildLayers(ProgramBuilder& builder) {
  const int inner = builder.Function("inner");
  builder.Work("in");
  builder.Work("in");
  const int layer = builder.Function("layer");
  builder.Work("w");
  builder.CallOf(inner, "deep");
  builder.Sum({1}, 64);
  builder.Function("main");
  builder.CallOf(layer, "layer.0");
  builder.CallOf(layer, "layer.1");
  builder.CallOf(inner, "flat");
  builder.Sum({0, 1}, 128);
  builder.EntryMain();
  return builder.Build();
}

TEST(SimulateTest, DevicesThatDoTheSameAreOne) {
  ProgramBuilder builder({{"data", 256}, {"tensor", 8}});
  NamedCosts costs;
  costs.seconds = {{"w", 2}, {"in", 0.5}};
  costs.collective = 1;
  const Simulation found = Simulate(BuildLayers(builder), costs);
  ASSERT_EQ(found.classes.size(), 1u);
  EXPECT_EQ(found.classes[0].devices, 2048);
  EXPECT_DOUBLE_EQ(found.step, 2 * (2 + 1 + 1) + 1 + 1);
  EXPECT_DOUBLE_EQ(found.times[0].collectives, 3);
  EXPECT_DOUBLE_EQ(found.Exposed(), 0.3);
  EXPECT_DOUBLE_EQ(found.Bubble(), 0);
}

// Without collectives all operations of a name are added up.
TEST(SimulateTest, OperationsOfOneDeviceAreAddedUpOnce) {
  ProgramBuilder builder({});
  const int inner = builder.Function("inner");
  builder.Work("in");
  const int layer = builder.Function("layer");
  builder.Work("w");
  builder.CallOf(inner, "deep");
  builder.Function("main");
  builder.CallOf(layer, "layer.0");
  builder.CallOf(layer, "layer.1");
  builder.EntryMain();
  NamedCosts costs;
  costs.seconds = {{"w", 2}, {"in", 0.5}};
  const Simulation found = Simulate(builder.Build(), costs);
  EXPECT_DOUBLE_EQ(found.step, 5);
  double sum = 0;
  for (const OperationTotal& total : found.operations) sum += total.seconds;
  EXPECT_DOUBLE_EQ(sum, found.step);
  EXPECT_DOUBLE_EQ(found.operations.front().calls, 2);
}

TEST(SimulateTest, OperationsAreAddedUpThroughCalls) {
  ProgramBuilder builder({{"data", 4}, {"tensor", 2}});
  NamedCosts costs;
  costs.seconds = {{"w", 2}, {"in", 0.5}};
  costs.collective = 1;
  const Simulation found = Simulate(BuildLayers(builder), costs);
  double sum = 0;
  for (const OperationTotal& total : found.operations) sum += total.seconds;
  EXPECT_DOUBLE_EQ(sum, found.step);
  const OperationTotal& first = found.operations.front();
  EXPECT_EQ(first.function + "/" + first.name, "layer/w");
  EXPECT_DOUBLE_EQ(first.calls, 2);
  EXPECT_DOUBLE_EQ(first.seconds, 4);
  for (const OperationTotal& total : found.operations) {
    if (total.function == "inner") {
      EXPECT_DOUBLE_EQ(total.calls, 6);  // two operations of one name
    }
    if (total.function == "main" && total.name == "sum") {
      EXPECT_EQ(total.group, 8);
      EXPECT_EQ(total.bytes, 128);
      EXPECT_EQ(total.kind, "all_reduce");
    }
  }
}

TEST(SimulateTest, OperationsHaveTheProgramsReasons) {
  ProgramBuilder builder({{"data", 4}, {"tensor", 2}});
  builder.Function("main");
  builder.Sum({0}, 64);
  builder.Because("of w");
  builder.Sum({0}, 64);
  builder.Because("of b");
  builder.Sum({0}, 64);
  builder.Because("of w");
  builder.Sum({0}, 128);
  builder.Because("of a larger one");
  builder.Sum({1}, 64);
  builder.EntryMain();
  const Simulation found = Simulate(builder.Build(), NamedCosts());
  std::map<std::pair<std::string, int64_t>, std::string> reasons;
  for (const OperationTotal& total : found.operations)
    reasons[{total.axes, total.bytes}] = total.why;
  const std::map<std::pair<std::string, int64_t>, std::string> expected = {
      {{"data", 64}, "of b; of w"},
      {{"data", 128}, "of a larger one"},
      {{"tensor", 64}, ""}};
  EXPECT_EQ(reasons, expected);
}

TEST(SimulateTest, ASlowDeviceHoldsUpThoseItMeets) {
  ProgramBuilder builder({{"data", 4}, {"tensor", 2}});
  NamedCosts costs;
  costs.seconds = {{"w", 2}, {"in", 0.5}};
  costs.collective = 1;
  costs.slowness = {{3, 2.0}};
  const Simulation found = Simulate(BuildLayers(builder), costs);
  // Classes: the slow device, its partner along `tensor`, all others.
  ASSERT_EQ(found.classes.size(), 3u);
  EXPECT_EQ(found.classes[0].devices, 6);
  EXPECT_EQ(found.classes[1].rank, 2);
  EXPECT_EQ(found.classes[2].rank, 3);
  EXPECT_DOUBLE_EQ(found.step, 2 * 7 + 3);
  EXPECT_DOUBLE_EQ(found.times[2].idle, 0);
  EXPECT_DOUBLE_EQ(found.times[0].idle, found.step - 10);
  for (const DeviceTimes& times : found.times)
    EXPECT_NEAR(SumOf(times), found.step, kTiny);
}

TEST(SimulateTest, GroupsThatCostMoreAreClassesOfTheirOwn) {
  // Sums over `data` have groups of even ranks and groups of odd ranks.
  ProgramBuilder builder({{"data", 4}, {"tensor", 2}});
  builder.Function("main");
  builder.Sum({0}, 8);
  builder.EntryMain();
  NamedCosts costs;
  costs.collective = 1;
  costs.latency = 0.25;
  const Simulation found = Simulate(builder.Build(), costs);
  ASSERT_EQ(found.classes.size(), 2u);
  EXPECT_DOUBLE_EQ(found.times[0].collectives, 1);
  EXPECT_DOUBLE_EQ(found.times[1].collectives, 2);
  EXPECT_DOUBLE_EQ(found.step, 2);
}

TEST(SimulateTest, StartedCollectivesRunBesideWorkInTheirOrder) {
  ProgramBuilder builder({{"data", 4}});
  builder.Function("main");
  builder.StartSum({0}, 8, 1);
  builder.StartSum({0}, 8, 2);
  builder.Work("long");
  builder.AwaitOf(1);
  builder.Work("short");
  builder.AwaitOf(2);
  builder.EntryMain();
  NamedCosts costs;
  costs.seconds = {{"long", 5}, {"short", 1}};
  costs.collective = 4;
  const program::Program& program = builder.Build();
  const Simulation found = Simulate(program, costs, {1, true});
  // The sums end at 4 and 8 s, the work at 5 and 6 s.
  EXPECT_DOUBLE_EQ(found.step, 8);
  EXPECT_DOUBLE_EQ(found.times[0].compute, 6);
  EXPECT_DOUBLE_EQ(found.times[0].collectives, 2);
  // Without overlap, nothing is hidden.
  costs.overlaps = false;
  EXPECT_DOUBLE_EQ(Simulate(program, costs).step, 14);
  costs.overlaps = true;
  int overlapped = 0;
  for (const Span& span : found.spans) {
    if (span.kind != Span::Kind::kOverlapped) continue;
    EXPECT_DOUBLE_EQ(span.start, overlapped == 0 ? 0 : 4);
    ++overlapped;
  }
  EXPECT_EQ(overlapped, 2);
  // The work of a slow device hides both sums completely.
  costs.slowness = {{2, 2.0}};
  const Simulation slow = Simulate(program, costs);
  EXPECT_EQ(slow.classes.size(), 2u);
  EXPECT_DOUBLE_EQ(slow.step, 12);
}

TEST(SimulateTest, ACollectiveThatIsStartedLateHoldsUpTheNext) {
  // Rank 0 works before it starts the first sum. Both await only the second.
  ProgramBuilder builder({{"data", 2}, {"tensor", 2}});
  builder.Function("main");
  builder.Work("a");
  builder.StartSum({0}, 8, 1);
  builder.StartSum({1}, 8, 2);
  builder.AwaitOf(2);
  builder.Work("b");
  builder.AwaitOf(1);
  builder.EntryMain();
  NamedCosts costs;
  costs.seconds = {{"a", 1}, {"b", 1}};
  costs.collective = 1;
  costs.slowness = {{0, 5.0}};
  const Simulation found = Simulate(builder.Build(), costs);
  // On rank 0, a ends at 5, the sums at 6 and 7, and b at 12. Rank 3 meets only
  // ranks that rank 0 delays. Its sums end at 2 and, because rank 2 waits for
  // rank 0, at 7.
  ASSERT_EQ(found.classes.size(), 4u);
  EXPECT_DOUBLE_EQ(found.step, 12);
  EXPECT_DOUBLE_EQ(found.times[3].compute, 2);
  EXPECT_DOUBLE_EQ(found.times[3].collectives, 1);
}

// Every synchronous schedule that core generates.
std::vector<core::Schedule> SchedulesOf(int ranks, int microbatches) {
  return {core::GPipe(ranks, microbatches),
          core::OneForwardOneBackward(ranks, microbatches),
          core::Interleaved(ranks, 2, microbatches),
          core::ZeroBubbleH1(ranks, microbatches),
          core::ZeroBubbleV(ranks, microbatches)};
}

TEST(SimulateTest, SchedulesTakeWhatTheirTimetableSays) {
  const core::StageCost kCosts[] = {{}, {2.5, 4, 1.75, 2.25}};
  for (const core::StageCost& cost : kCosts) {
    for (const int ranks : {1, 2, 4, 8}) {
      for (const int microbatches : {1, 3, 8, 16}) {
        for (const core::Schedule& schedule :
             SchedulesOf(ranks, microbatches)) {
          core::Costs stages;
          stages.stages.assign(static_cast<size_t>(schedule.stages), cost);
          const core::Timetable table = core::MakeTimetable(schedule, stages);
          NamedCosts costs;
          costs.seconds = {{"F", cost.forward},
                           {"B", cost.backward},
                           {"I", cost.input_grad},
                           {"W", cost.weight_grad}};
          ProgramBuilder builder({{"pipe", ranks}}, 0);
          const Simulation found =
              Simulate(BuildSchedule(schedule, builder), costs);
          ASSERT_NEAR(found.step, table.step, kTiny);
          ASSERT_NEAR(found.Bubble(), table.bubble, kTiny);
          for (int rank = 0; rank < ranks; ++rank)
            ASSERT_NEAR(
                found.times[static_cast<size_t>(rank)].idle,
                table.rank_bubble[static_cast<size_t>(rank)] * found.step,
                1e-6);
        }
      }
    }
  }
}

TEST(SimulateTest, StepsFollowEachOtherWithoutWaitingForAll) {
  // Rank 1 is slower and receives from rank 0, so only the first step shows the
  // wait.
  ProgramBuilder builder({{"pipe", 2}}, 0);
  builder.Function("main");
  builder.Work("a");
  builder.Send(1, 8);
  builder.EntryMain();
  builder.Function("main.1");
  builder.Receive(0, 8);
  builder.Work("c");
  builder.EntryMain();
  NamedCosts costs;
  costs.seconds = {{"a", 1}, {"c", 2}};
  const program::Program& program = builder.Build();
  EXPECT_DOUBLE_EQ(Simulate(program, costs).step, 3);
  const Simulation third = Simulate(program, costs, {3, true});
  EXPECT_DOUBLE_EQ(third.step, 2);
  EXPECT_DOUBLE_EQ(third.times[0].idle, 1);
  EXPECT_DOUBLE_EQ(third.times[1].idle, 0);
  // Rank 0 begins its third step at 2, rank 1 at 5.
  ASSERT_EQ(third.main.size(), 2u);
  EXPECT_DOUBLE_EQ(third.main[0].front().time, 0);
  EXPECT_DOUBLE_EQ(third.main[1].front().time, 3);
}

// FlexFlow's graphs. With one device per operation, a step takes as long as the
// longest path. On one device, it takes the sum.
TEST(SimulateTest, GraphsTakeTheirLongestPath) {  // D14
  struct Graph {
    std::vector<double> costs;
    std::vector<std::pair<int, int>> edges;
    double longest, sum;
  };
  for (const Graph& graph : std::vector<Graph>{
           {{10, 15, 20, 25, 30, 35},
            {{0, 1}, {0, 2}, {1, 3}, {2, 3}, {2, 4}, {3, 5}, {4, 5}},
            95,
            135},
           {{10, 15, 20, 25}, {{0, 1}, {0, 2}, {1, 3}, {2, 3}}, 55, 70}}) {
    const int size = static_cast<int>(graph.costs.size());
    ProgramBuilder spread({{"pipe", size}}, 0), alone({{"pipe", 1}}, 0);
    NamedCosts costs;
    alone.Function("main");
    for (int i = 0; i < size; ++i) {
      const std::string name(1, static_cast<char>('a' + i));
      costs.seconds[name] = graph.costs[static_cast<size_t>(i)];
      alone.Work(name);
      spread.Function("main." + name);
      for (const auto& [from, to] : graph.edges)
        if (to == i) spread.Receive(from, 8);
      spread.Work(name);
      for (const auto& [from, to] : graph.edges)
        if (from == i) spread.Send(to, 8);
      spread.EntryMain();
    }
    alone.EntryMain();
    EXPECT_DOUBLE_EQ(Simulate(spread.Build(), costs, {1, true}).step,
                     graph.longest);
    EXPECT_DOUBLE_EQ(Simulate(alone.Build(), costs, {1, true}).step, graph.sum);
  }
}

TEST(SimulateTest, ThousandsOfDevicesCostNoMoreThanTheDistinctOnes) {
  ProgramBuilder builder({{"pipe", 64}, {"data", 6}, {"tensor", 8}}, 0);
  const core::Schedule schedule = core::OneForwardOneBackward(64, 128);
  NamedCosts costs;
  costs.seconds = {{"F", 1}, {"B", 2}};
  const Simulation found = Simulate(BuildSchedule(schedule, builder), costs);
  EXPECT_EQ(found.classes.size(), 64u);
  for (const DeviceClass& one : found.classes) EXPECT_EQ(one.devices, 48);
  EXPECT_NEAR(found.Bubble(), 63.0 / (63 + 128), kTiny);
}

}  // namespace
}  // namespace partita::simulator
