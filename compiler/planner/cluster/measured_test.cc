// Tests that measured rates replace formulas, between the measured sizes and
// beyond them, and that cluster.yaml preserves them.
#include "compiler/planner/cluster/measured.h"

#include "compiler/planner/cluster/cluster.h"
#include "compiler/planner/cost/cost.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace partita::planner {
namespace {

using core::Precision;
using testing::HasSubstr;

TEST(RateTable, IsAPowerOfTheSizesBetweenThose) {
  const RateTable table = {{{10, 1000}, {1, 2, 4}}, {1, 2, 4, 100, 200, 400}};
  EXPECT_DOUBLE_EQ(table.At({10, 1}), 1);
  EXPECT_DOUBLE_EQ(table.At({1000, 4}), 400);
  EXPECT_DOUBLE_EQ(table.At({100, 2}), 20);
  EXPECT_NEAR(table.At({100, 3}), 30, 1e-9);
  // Sizes beyond the grid get the rate at its edge.
  EXPECT_DOUBLE_EQ(table.At({1, 0.5}), 1);
  EXPECT_DOUBLE_EQ(table.At({1e6, 1e6}), 400);
}

TEST(RateTable, FewBytesTakeWhatTheFewestMeasuredTake) {
  const RateTable table = {{{1000, 1e6}}, {1e9, 1e10}};
  EXPECT_DOUBLE_EQ(table.Seconds(10), 1e-6);
  EXPECT_DOUBLE_EQ(table.Seconds(1e6), 1e-4);
  EXPECT_DOUBLE_EQ(table.Seconds(1e7), 1e-3);
}

TEST(RateTable, Names) {
  EXPECT_EQ(DimensionsOf(ProductName("bf16", ProductForm::kLhsTransposed)), 3);
  EXPECT_EQ(DimensionsOf(ConvName("f32", "weight_grad", ConvKind::kDepthwise)),
            2);
  EXPECT_EQ(DimensionsOf(ConvName("f32", "forward", ConvKind::kPointwise)), 3);
  EXPECT_EQ(DimensionsOf(CollectiveName("all_reduce", 2)), 1);
  for (const std::string& name :
       {AttentionName(false), AttentionName(true), std::string(kCopyName),
        std::string(kUpdateName), std::string(kSendName)})
    EXPECT_EQ(DimensionsOf(name), 1) << name;
  for (const char* name :
       {"", "copy 2", "attention", "product f32", "product f64 nn",
        "all_reduce", "all_reduce two", "sum 2"})
    EXPECT_EQ(DimensionsOf(name), 0) << name;
}

// Two devices, with a table of each kind.
Cluster Measured() {
  Cluster cluster = *BuiltInCluster("2x a100-80-sxm");
  Device& device = cluster.device;
  device.cycle = 0.25e-9;
  device.overlaps = false;
  device.tables["product f32 nn"] = {{{8, 64}, {8}, {8}}, {1e9, 2e9}};
  device.tables["product f32 tn"] = {{{8}, {8}, {8}}, {5e8}};
  device.tables["copy"] = {{{1e3, 1e6}}, {1e9, 1e10}};
  device.tables["update"] = {{{1e3, 1e6}}, {1e9, 2e10}};
  device.tables["all_reduce 2"] = {{{1e3}}, {2e9}};
  device.tables["all_reduce 4"] = {{{1e3}}, {1e9}};
  device.tables["exchange 2"] = {{{1e3}}, {3e9}};
  device.tables["send"] = {{{1e3}}, {4e9}};
  return cluster;
}

constexpr double kNear = 1e-12;  // seconds

TEST(Measured, TakesThePlaceOfFormulas) {
  const Cluster cluster = Measured();
  const Device& device = cluster.device;
  const double flops = 2.0 * 64 * 8 * 8;
  EXPECT_NEAR(MatmulTime(device, Precision::kF32, 3, 64, 8, 8), 3 * flops / 2e9,
              kNear);
  EXPECT_NEAR(MatmulTime(device, Precision::kF32, 1, 64, 8, 8,
                         ProductForm::kLhsTransposed),
              flops / 5e8, kNear);
  // Packed products were not measured, so the nearest form is used.
  EXPECT_NEAR(
      MatmulTime(device, Precision::kF32, 1, 64, 8, 8, ProductForm::kPacked),
      flops / 2e9, kNear);
  EXPECT_NEAR(MemoryBoundTime(device, 1e6), 1e-4, kNear);
  EXPECT_NEAR(UpdateTime(device, 1e6), 5e-5, kNear);
  EXPECT_NEAR(TransferTime(cluster, 0, 1, 8e3), 2e-6, kNear);
  EXPECT_DOUBLE_EQ(TransferTime(cluster, 1, 1, 8e3), 0);
  const auto time = [&](core::CollectiveKind kind, int devices) {
    return CollectiveTime(cluster, kind, 2e3, GroupShape{{devices}});
  };
  EXPECT_NEAR(time(core::CollectiveKind::kAllReduce, 2), 1e-6, kNear);
  EXPECT_NEAR(time(core::CollectiveKind::kAllReduce, 3), 2e-6, kNear);
  EXPECT_NEAR(time(core::CollectiveKind::kAllReduce, 8), 2e-6, kNear);
  EXPECT_NEAR(time(core::CollectiveKind::kPermute, 2), 2e3 / 3e9, kNear);
  // Operations that were not measured use the formula.
  EXPECT_GT(time(core::CollectiveKind::kAllGather, 2), 0);
  EXPECT_GT(MatmulTime(device, Precision::kBF16, 1, 64, 8, 8), 0);
}

TEST(Measured, IsReadBackAsItWasWritten) {
  const Cluster cluster = Measured();
  const std::string text = WriteCluster(cluster);
  const auto read = ReadCluster(text, "c.yaml");
  ASSERT_TRUE(read.ok()) << read.status() << text;
  EXPECT_EQ(read->device.cycle, cluster.device.cycle);
  EXPECT_FALSE(read->device.overlaps);
  ASSERT_EQ(read->device.tables.size(), cluster.device.tables.size());
  for (const auto& [name, table] : cluster.device.tables) {
    EXPECT_EQ(read->device.tables.at(name).sizes, table.sizes) << name;
    EXPECT_EQ(read->device.tables.at(name).rates, table.rates) << name;
  }
}

TEST(Measured, TablesThatCannotBeAreRefusedWithThePlace) {
  const auto refusal = [](const std::string& table) {
    const auto cluster = ReadCluster(
        "device: {like: h100, tables: [" + table + "]}\n", "c.yaml");
    return cluster.ok() ? "" : std::string(cluster.status().message());
  };
  EXPECT_EQ(refusal("{of: copy, sizes: [[1, 2]], rates: [1, 2]}"), "");
  EXPECT_THAT(refusal("{of: copies, sizes: [[1]], rates: [1]}"),
              HasSubstr("c.yaml:1:36: of: expected what `partita measure` "
                        "measures, as 'product f32 nn'"));
  EXPECT_THAT(refusal("{of: copy, sizes: [[1], [2]], rates: [1]}"),
              HasSubstr("sizes: expected 1 lists of numbers, found 2; if "
                        "another version measured it, run `partita measure` "
                        "again"));
  EXPECT_THAT(refusal("{of: copy, sizes: [[2, 1]], rates: [1, 2]}"),
              HasSubstr("sizes: expected ascending numbers"));
  EXPECT_THAT(refusal("{of: copy, sizes: [[1, 2]], rates: [1]}"),
              HasSubstr("rates: expected 2, one for each combination of "
                        "sizes, found 1"));
  EXPECT_THAT(refusal("{of: copy, sizes: [[1]], rates: [-1]}"),
              HasSubstr("rates: expected a number above 0, found '-1'"));
  EXPECT_THAT(refusal("{of: copy, sizes: [[1]], rates: [1]}, {of: copy, "
                      "sizes: [[1]], rates: [1]}"),
              HasSubstr("tables: 'copy' is there twice"));
  EXPECT_THAT(refusal("copy"), HasSubstr("tables: expected a map"));
}

}  // namespace
}  // namespace partita::planner
