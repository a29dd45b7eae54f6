// What the search says of its choice is what it knows: prices of meshes that it
// did not compile, mixes that compile to more or less than was expected, and
// divisions that do not compile at all.
#include "compiler/driver/planning/search_launches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace partita::driver {
namespace {

using planner::StepLaunch;
using planner::StepLaunches;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kBytes = 64e9;
constexpr int kDevices = 4;

StepLaunch kernel(double bytes, int origin) {
  StepLaunch launch;
  launch.bytes = bytes;
  launch.origin = origin;
  return launch;
}

StepLaunch reduction(double bytes) {
  StepLaunch launch;
  launch.kind = StepLaunch::Kind::kCollective;
  launch.bytes = bytes;
  launch.ranks = {0, 1};
  return launch;
}

// Two layers of a kernel each, of which mapping B makes the first one fast and
// mapping M the second one.
class SearchLaunchesTest : public ::testing::Test {
 protected:
  SearchLaunchesTest() {
    planner::StepGraph& step = request_.step;
    step.graph.mesh.axes = {{"data", 2}, {"tensor", 2}};
    step.batch = 16;
    step.layers = {"first", "second"};
    step.dims = {{"B", "M"}, {"B", "M"}};
    planner::StepMapping batch{{"B"}, {}, true}, width{{"M"}, {}, false};
    for (size_t v = 0; v < 2; ++v) {
      core::Value value;
      value.shape = {16, 1 << 24};
      step.graph.values.push_back(value);
      step.units.push_back(value.shape);
      step.held.push_back({static_cast<int>(v), static_cast<int>(v)});
      batch.shardings.push_back(core::Replicated(2));
      width.shardings.push_back(core::Replicated(2));
    }
    // Each mapping divides the value of the layer that it is good for.
    core::DimSharding halves;
    halves.axes = {{1, 1, 2, 1}};
    batch.shardings[0].dims[0] = width.shardings[1].dims[1] = halves;
    step.mappings = {batch, width};
    planner::StepFunction function;
    for (int v : {0, 1})
      function.works.push_back(
          {planner::WorkKind::kStream, -1, false, 1, {v}, {}});
    step.functions.push_back(function);
    step.runs = {{0, false, {0, 1}, {}, {0, 1}}};
    request_.cluster = *planner::BuiltInCluster("4x a100-80-sxm");
    request_.launches = [this](const planner::StepMapping& mapping, int data,
                               int inner) {
      ++compiled_;
      return launchesOf(mapping.of_batch, data * inner);
    };
    request_.step_launches = [this](const plan::Plan&) { return mixed_; };
  }

  std::optional<StepLaunches> launchesOf(bool of_batch, int devices) const {
    if (of_batch ? !batch_compiles_ : !width_compiles_) return std::nullopt;
    const double fast = kBytes / devices, slow = 2 * fast;
    return StepLaunches{
        {kernel(of_batch ? fast : slow, 0), kernel(of_batch ? slow : fast, 1)}};
  }

  double seconds(double bytes) const {
    return planner::LaunchTime(request_.cluster, kernel(bytes, 0));
  }

  absl::StatusOr<LaunchSearch> search(double memory = 4e9) const {
    return searchLaunches(request_, memory);
  }

  LayersRequest request_;
  bool batch_compiles_ = true, width_compiles_ = true;
  std::optional<std::vector<StepLaunch>> mixed_;  // what a mix compiles to
  int compiled_ = 0;
};

// What a mix is expected to take is a price, also where it takes more.
TEST_F(SearchLaunchesTest, AMixThatTakesMoreLeavesAGap) {
  const double fast = kBytes / kDevices;
  mixed_ = {kernel(fast, 0), kernel(fast, 1), kernel(fast / 2, 1)};
  const auto found = search();
  ASSERT_TRUE(found.ok()) << found.status();
  const double expected = 2 * seconds(fast),
               taken = expected + seconds(fast / 2);
  EXPECT_NEAR(found->result.best.prediction.step, taken, 1e-12);
  EXPECT_NEAR(found->least, expected, 1e-12);
  EXPECT_NEAR(found->result.gap, taken / expected - 1, 1e-9);
  EXPECT_GT(found->result.gap, 0.1);
}

// It then is all there is to know, and no part of it is less than nothing.
TEST_F(SearchLaunchesTest, AMixThatTakesLessLeavesNone) {
  const double fast = kBytes / kDevices;
  mixed_ = {kernel(fast, 0), kernel(fast / 2, 1)};
  const auto found = search();
  ASSERT_TRUE(found.ok()) << found.status();
  const planner::LayerPrediction& taken = found->result.best.prediction;
  EXPECT_NEAR(taken.step, seconds(fast) + seconds(fast / 2), 1e-12);
  EXPECT_EQ(found->least, taken.step);
  EXPECT_EQ(found->result.gap, 0);
  EXPECT_NEAR(taken.compute, taken.step, 1e-12);
  EXPECT_EQ(taken.boundaries, 0);
}

TEST_F(SearchLaunchesTest, WhatAMixSendsIsBetweenLayers) {
  const double fast = kBytes / kDevices;
  const StepLaunch sum = reduction(1e8);
  mixed_ = {kernel(fast, 0), sum, kernel(fast, 1)};
  const auto found = search();
  ASSERT_TRUE(found.ok()) << found.status();
  const planner::LayerPrediction& taken = found->result.best.prediction;
  EXPECT_NEAR(taken.boundaries, planner::LaunchTime(request_.cluster, sum),
              1e-12);
  EXPECT_NEAR(
      taken.step,
      taken.compute + taken.collectives + taken.boundaries + taken.gradients,
      1e-12);
}

// Of a model so large that one mesh is all that is compiled, formulas alone say
// what others may take.
TEST_F(SearchLaunchesTest, MeshesThatWereNotCompiledCount) {
  request_.step.graph.ops.resize(60000);
  const auto found = search();
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->prices.size(), 3u);
  EXPECT_EQ(found->tables.size(), 1u);
  double least = found->result.best.prediction.step;
  for (const MeshPrice& price : found->prices) {
    EXPECT_EQ(price.compiled, &price == &found->prices[0]);
    least = std::min(least, price.seconds);
  }
  EXPECT_EQ(found->least, least);
  EXPECT_LT(least, found->result.best.prediction.step);
  EXPECT_NEAR(found->result.gap, found->result.best.prediction.step / least - 1,
              1e-12);
  const auto facts = chooseLayers(request_);
  ASSERT_TRUE(facts.ok()) << facts.status();
  std::string text;
  llvm::raw_string_ostream stream(text);
  printLayers(*facts, stream);
  EXPECT_THAT(text, HasSubstr("1 mesh compiled, 2 judged by formulas alone"));
}

TEST_F(SearchLaunchesTest, WhatDoesNotCompileIsNotOffered) {
  width_compiles_ = false;
  const auto found = search();
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(found->result.best.division.mappings, ElementsAre(0, 0));
  EXPECT_EQ(found->result.gap, 0);
  EXPECT_EQ(found->not_compiled, 2);  // on 2 x 2 and on 1 x 4
  for (const planner::LayerTable& table : found->tables)
    EXPECT_FALSE(table.offered[1]);
  const auto facts = chooseLayers(request_);
  ASSERT_TRUE(facts.ok()) << facts.status();
  std::string text;
  llvm::raw_string_ostream stream(text);
  printLayers(*facts, stream);
  EXPECT_THAT(text, HasSubstr("2 divisions do not compile and were left out"));
}

TEST_F(SearchLaunchesTest, RefusesAStepOfWhichNothingCompiles) {
  batch_compiles_ = width_compiles_ = false;
  EXPECT_EQ(std::string(search().status().message()),
            "expected a division within 4.0 GB a device that compiles, found "
            "none: 3 were tried that do not: write a plan by hand, of which "
            "partita compile says what is in its way");
}

// Whole, a value takes 1.07 GB; of both a mix has a half or a quarter.
TEST_F(SearchLaunchesTest, RefusesALimitThatOnlyAMixKeepsThatDoesNotCompile) {
  mixed_ = {kernel(kBytes, 0)};
  EXPECT_TRUE(search(0.8e9).ok());
  mixed_ = std::nullopt;
  request_.memory = 0.8e9;
  EXPECT_THAT(
      std::string(chooseLayers(request_).status().message()),
      HasSubstr("that do not, and one mapping for all layers takes 1.3 GB"));
}

}  // namespace
}  // namespace partita::driver
