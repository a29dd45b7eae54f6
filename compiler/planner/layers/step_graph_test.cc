// Tests that layer costs follow from the operations' sharding rules: shares of
// products, partial sums, halo rows, gathers between layers.
#include "compiler/planner/layers/step_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "compiler/planner/cost/cost.h"

namespace partita::planner {
namespace {

using core::CollectiveKind;
using core::FactorKind;
using core::Precision;

constexpr int64_t kBatch = 8, kWidth = 2048, kHidden = 8192;

core::DimSharding Over(int axis, int priority) {
  core::DimSharding dim;
  dim.axes = {{axis, 1, 2, priority}};
  return dim;
}

// [B, E] x [E, M] -> [B, M], then x [M, E]: an MLP of one layer without
// activation. Its mappings divide the batch, M, or nothing.
class MlpTest : public ::testing::Test {
 protected:
  explicit MlpTest(int64_t batch = kBatch, int64_t width = kWidth,
                   int64_t hidden = kHidden)
      : batch_(batch), width_(width), inner_(hidden) {}

  void SetUp() override {
    step_.graph.mesh.axes = {{"data", 2}, {"tensor", 2}};
    input_ = Add({batch_, width_});
    up_ = Add({width_, inner_});
    hidden_ = Add({batch_, inner_});
    down_ = Add({inner_, width_});
    output_ = Add({batch_, width_});
    AddProduct(input_, up_, hidden_);
    AddProduct(hidden_, down_, output_);
    step_.layers = {"mlp"};
    step_.dims = {{"B", "M", "E"}};
    step_.runs = {{0, false, {0, 0}, {0, 0}}};
    step_.held = {{up_, 0}, {down_, 0}};
    step_.batch = batch_;
    StepMapping batch{{"B"}, {}, true}, width{{"M"}, {}, false},
        whole{{}, {}, false};
    for (const core::Value& value : step_.graph.values) {
      batch.shardings.push_back(core::Replicated(2));
      width.shardings.push_back(core::Replicated(2));
      whole.shardings.push_back(core::Replicated(2));
      step_.units.push_back(value.shape);
    }
    for (int value : {input_, hidden_, output_}) {
      batch.shardings[value].dims[0].axes = {{0, 1, 2, 1}, {1, 1, 2, 1}};
      width.shardings[value].dims[0] = Over(0, 1);
      whole.shardings[value].dims[0] = Over(0, 1);
    }
    width.shardings[up_].dims[1] = width.shardings[hidden_].dims[1] =
        width.shardings[down_].dims[0] = Over(1, 2);
    step_.mappings = {batch, width, whole};
    cluster_ = *BuiltInCluster("4x a100-80-sxm");
  }

  int Add(std::vector<int64_t> shape) {
    core::Value value;
    value.shape = std::move(shape);
    step_.graph.values.push_back(value);
    return static_cast<int>(step_.graph.values.size()) - 1;
  }

  void AddProduct(int left, int right, int result) {
    core::Op op;
    const auto size = [&](int value, int dim) {
      return step_.graph.values[value].shape[dim];
    };
    op.rule.factors = {{size(left, 0), FactorKind::kCarried},
                       {size(right, 1), FactorKind::kCarried},
                       {size(left, 1), FactorKind::kReduced}};
    op.rule.operands = {{{0}, {2}}, {{2}, {1}}};
    op.rule.results = {{{0}, {1}}};
    op.operands = {left, right};
    op.results = {result};
    if (step_.functions.empty()) step_.functions.emplace_back();
    const int number = static_cast<int>(step_.graph.ops.size());
    step_.functions[0].ops.push_back(number);
    step_.functions[0].works.push_back(
        {WorkKind::kProduct, number, false, 1, {left, right}, {result}});
    step_.graph.ops.push_back(std::move(op));
  }

  double Product(int64_t m, int64_t n, int64_t k) const {
    return MatmulTime(cluster_.device, Precision::kF32, 1, m, n, k);
  }

  const int64_t batch_, width_, inner_;
  StepGraph step_;
  Cluster cluster_;
  int input_, up_, hidden_, down_, output_;
};

TEST_F(MlpTest, SharesAndPartialSumsAreTheRules) {
  const LayerTable table = TabulateStep(step_, cluster_, Precision::kF32, 2, 2);
  const std::vector<LayerCost>& costs = table.costs[0];
  EXPECT_NEAR(costs[0].compute,
              Product(2, kHidden, kWidth) + Product(2, kWidth, kHidden), 1e-9);
  EXPECT_NEAR(costs[1].compute,
              Product(4, kHidden / 2, kWidth) + Product(4, kWidth, kHidden / 2),
              1e-9);
  EXPECT_NEAR(costs[2].compute,
              Product(4, kHidden, kWidth) + Product(4, kWidth, kHidden), 1e-9);
  // With M divided, the second product is a partial sum.
  EXPECT_EQ(costs[0].collectives, 0);
  EXPECT_NEAR(costs[1].collectives,
              CollectiveTime(cluster_, CollectiveKind::kAllReduce,
                             4.0 * 4 * kWidth, ShapeOfStride(cluster_, 1, 2)),
              1e-9);
  EXPECT_EQ(costs[0].memory, 2 * 4.0 * kWidth * kHidden);
  EXPECT_EQ(costs[1].memory, 4.0 * kWidth * kHidden);
}

// Products of factors of 8 bits take their rate, and others bf16's. Without
// such products, a device multiplies bf16.
TEST_F(MlpTest, FactorsOfEightBitsTakeTheirRate) {
  for (core::Value& value : step_.graph.values) value.element_bytes = 2;
  step_.functions[0].works[0].float8 = true;
  cluster_ = *BuiltInCluster("4x h100-sxm");
  const auto time = [&](Precision precision, int64_t n, int64_t k) {
    return MatmulTime(cluster_.device, precision, 1, 4, n, k);
  };
  const auto found = [&](Precision precision) {
    return TabulateStep(step_, cluster_, precision, 2, 2).costs[0][2].compute;
  };
  EXPECT_NEAR(found(Precision::kF8),
              time(Precision::kF8, kHidden, kWidth) +
                  time(Precision::kBF16, kWidth, kHidden),
              1e-12);
  EXPECT_LT(found(Precision::kF8), found(Precision::kBF16));
  cluster_ = *BuiltInCluster("4x a100-80-sxm");
  EXPECT_EQ(found(Precision::kF8), found(Precision::kBF16));
}

// Mappings are not tied to the mesh on which they were found.
TEST_F(MlpTest, MeshesAreOfAnySize) {
  const std::vector<LayerTable> tables =
      TabulateMeshes(step_, cluster_, Precision::kF32);
  ASSERT_EQ(tables.size(), 3u);
  EXPECT_EQ(tables[0].inner, 1);
  EXPECT_EQ(tables[0].offered, (std::vector<bool>{true, false, false}));
  EXPECT_EQ(tables[2].data, 1);
  EXPECT_NEAR(tables[2].costs[0][1].compute,
              Product(8, kHidden / 4, kWidth) + Product(8, kWidth, kHidden / 4),
              1e-9);
  EXPECT_EQ(tables[2].costs[0][1].memory, 2.0 * kWidth * kHidden);
}

// Three heads do not fill four shards: one device has none, the others have
// one.
TEST_F(MlpTest, UnitsStayTogether) {
  step_.units[hidden_][1] = step_.units[up_][1] = step_.units[down_][0] = 2;
  const LayerTable table = TabulateStep(step_, cluster_, Precision::kF32, 1, 4);
  EXPECT_NEAR(table.costs[0][1].compute,
              Product(8, kHidden / 2, kWidth) + Product(8, kWidth, kHidden / 2),
              1e-9);
}

TEST_F(MlpTest, TheBatchMustDivide) {
  step_.batch = 6;
  const LayerTable table = TabulateStep(step_, cluster_, Precision::kF32, 2, 2);
  EXPECT_EQ(table.offered, (std::vector<bool>{false, true, true}));
  // No mesh of 4 x 1 exists, because the batch of 6 does not divide by 4.
  EXPECT_EQ(TabulateMeshes(step_, cluster_, Precision::kF32).size(), 2u);
}

TEST_F(MlpTest, GradientsAndBackwardAreApart) {
  step_.runs[0].backward = true;
  step_.moves = {{hidden_, hidden_, 0, true}};
  // Partial results are summed over the batch's axis.
  StepMapping& whole = step_.mappings[2];
  const int sum = Add({kWidth, kHidden}), added = Add({kWidth, kHidden});
  for (StepMapping& mapping : step_.mappings)
    mapping.shardings.resize(7, core::Replicated(2));
  whole.shardings[sum].unreduced = {{0, 1, 2, 1}};
  step_.units.resize(7, {kWidth, kHidden});
  step_.moves = {{sum, added, 0, true}};
  const LayerTable table = TabulateStep(step_, cluster_, Precision::kF32, 2, 2);
  const LayerCost& cost = table.costs[0][2];
  EXPECT_NEAR(
      cost.gradients,
      CollectiveTime(cluster_, CollectiveKind::kAllReduce,
                     4.0 * kWidth * kHidden, ShapeOfStride(cluster_, 2, 2)),
      1e-9);
  EXPECT_EQ(cost.hiding, cost.compute);
  // If collectives slow computing, nothing hides them.
  cluster_.device.overlaps = false;
  EXPECT_EQ(
      TabulateStep(step_, cluster_, Precision::kF32, 2, 2).costs[0][2].hiding,
      0);
}

// From a divided batch to whole images is a gather. The way back is a slice.
TEST_F(MlpTest, BoundariesAreReshards) {
  step_.layers.push_back("next");
  step_.dims.push_back({});
  step_.crossings = {{output_, 0, 1}};
  const LayerTable table = TabulateStep(step_, cluster_, Precision::kF32, 2, 2);
  const auto& between = table.boundaries[1];
  const double bytes = 4.0 * 4 * kWidth;
  EXPECT_NEAR(between[0][1],
              CollectiveTime(cluster_, CollectiveKind::kAllGather, bytes,
                             ShapeOfStride(cluster_, 1, 2)),
              1e-9);
  EXPECT_NEAR(between[1][0], MemoryBoundTime(cluster_.device, bytes), 1e-9);
  EXPECT_EQ(between[1][2], 0);
  EXPECT_EQ(between[1][1], 0);
}

// D8, AutoParallel's tests/test_optimize_placement.py on one axis of 256
// devices. Each device has its own part of the batch.
class FeedForwardTest : public MlpTest {
 protected:
  FeedForwardTest() : MlpTest(/*batch=*/4096, /*width=*/1024, 4096) {}

  void SetUp() override {
    MlpTest::SetUp();
    cluster_ = *BuiltInCluster("256x a100-80-sxm");
    const int gradient = Add({batch_, width_});
    const int of_hidden = Add({batch_, inner_});
    of_down_ = Add({inner_, width_});
    of_up_ = Add({width_, inner_});
    const int sum_down = Add({inner_, width_}), sum_up = Add({width_, inner_});
    step_.functions.emplace_back();
    AddBackward({{{0}, {2}}, {{1}, {2}}, {{0}, {1}}}, gradient, down_,
                of_hidden);
    AddBackward({{{2}, {0}}, {{2}, {1}}, {{0}, {1}}}, hidden_, gradient,
                of_down_);
    AddBackward({{{2}, {0}}, {{2}, {1}}, {{0}, {1}}}, input_, of_hidden,
                of_up_);
    step_.runs.push_back({1, true, {0, 0, 0}, {0, 0, 0}});
    step_.moves = {{of_down_, sum_down, 0, true}, {of_up_, sum_up, 0, true}};
    // Parameters and gradient sums are whole, or divided over all devices.
    StepMapping whole{{"B"}, {}, true}, parts;
    for (const core::Value& value : step_.graph.values) {
      whole.shardings.push_back(core::Replicated(2));
      if (step_.units.size() < whole.shardings.size())
        step_.units.push_back(value.shape);
    }
    const std::vector<core::AxisRef> both = {{0, 1, 2, 1}, {1, 1, 2, 1}};
    for (int value : {input_, hidden_, output_, gradient, of_hidden})
      whole.shardings[value].dims[0].axes = both;
    for (int value : {of_down_, of_up_})
      whole.shardings[value].unreduced = both;
    parts = whole;
    for (int value : {up_, down_, sum_down, sum_up})
      parts.shardings[value].dims[0].axes = {{0, 1, 2, 2}, {1, 1, 2, 2}};
    step_.mappings = {whole, parts};
  }

  void AddBackward(std::vector<core::TensorFactors> factors, int left,
                   int right, int result) {
    core::Op op;
    std::vector<int64_t> sizes(3);
    const int values[] = {left, right, result};
    for (size_t t = 0; t < 3; ++t)
      for (size_t d = 0; d < 2; ++d)
        sizes[factors[t][d][0]] = step_.graph.values[values[t]].shape[d];
    op.rule.factors = {{sizes[0], FactorKind::kCarried},
                       {sizes[1], FactorKind::kCarried},
                       {sizes[2], FactorKind::kReduced}};
    op.rule.operands = {factors[0], factors[1]};
    op.rule.results = {factors[2]};
    op.operands = {left, right};
    op.results = {result};
    const int number = static_cast<int>(step_.graph.ops.size());
    step_.functions[1].ops.push_back(number);
    step_.functions[1].works.push_back(
        {WorkKind::kProduct, number, false, 1, {left, right}, {result}});
    step_.graph.ops.push_back(std::move(op));
  }

  int of_down_, of_up_;
};

TEST_F(FeedForwardTest, D8MemoryDecidesWhereParametersLie) {
  const LayerTable table =
      TabulateStep(step_, cluster_, Precision::kF32, 1, 256);
  const LayerCost &whole = table.costs[0][0], &parts = table.costs[0][1];
  const double weights = 4.0 * 2 * width_ * inner_;
  EXPECT_EQ(whole.memory, weights);
  EXPECT_EQ(parts.memory, weights / 256);
  // With room for all parameters, each device keeps all of them.
  const auto wide = SearchLayers({table}, weights);
  ASSERT_TRUE(wide.ok()) << wide.status();
  EXPECT_EQ(wide->best.division.mappings, (std::vector<int>{0}));
  // With the least memory, parameters are divided and gathered for each
  // product.
  const auto narrow = SearchLayers({table}, weights / 256);
  ASSERT_TRUE(narrow.ok()) << narrow.status();
  EXPECT_EQ(narrow->best.division.mappings, (std::vector<int>{1}));
  const GroupShape all = ShapeOfStride(cluster_, 1, 256);
  EXPECT_EQ(whole.collectives, 0);
  EXPECT_NEAR(parts.collectives,
              3 * CollectiveTime(cluster_, CollectiveKind::kAllGather,
                                 weights / 2, all),
              1e-9);
  EXPECT_NEAR(parts.gradients,
              2 * CollectiveTime(cluster_, CollectiveKind::kReduceScatter,
                                 weights / 2, all),
              1e-9);
}

TEST_F(FeedForwardTest, D8GradientsArePartialSums) {
  for (const StepMapping& mapping : step_.mappings)
    for (int op : {3, 4}) {
      const core::OpSharding resolved =
          core::Resolve(step_.graph, op, mapping.shardings);
      EXPECT_EQ(core::ToString(step_.graph.mesh, resolved.results[0]),
                "[{?}, {?}] unreduced={data, tensor}");
    }
}

// Factors are images, heads, queries, keys, and the head sizes of keys and of
// values. A product of query-key pairs reduces over one of the last two.
TEST(StepGraph, AttentionIsItsProductsOfPairs) {
  constexpr int64_t kImages = 2, kHeads = 4, kRows = 512, kKeys = 1024;
  StepGraph step;
  step.graph.mesh.axes = {{"data", 2}, {"tensor", 2}};
  core::Value q, k, v, y;
  q.shape = {kImages, kHeads, kRows, 64};
  k.shape = {kImages, kHeads, kKeys, 64};
  v.shape = {kImages, kHeads, kKeys, 32};
  y.shape = {kImages, kHeads, kRows, 32};
  step.graph.values = {q, k, v, y};
  core::Op op;
  for (int64_t size : {kImages, kHeads, kRows, kKeys, int64_t{64}, int64_t{32}})
    op.rule.factors.push_back({size, FactorKind::kCarried});
  op.rule.operands = {
      {{0}, {1}, {2}, {4}}, {{0}, {1}, {3}, {4}}, {{0}, {1}, {3}, {5}}};
  op.rule.results = {{{0}, {1}, {2}, {5}}};
  op.operands = {0, 1, 2};
  op.results = {3};
  step.graph.ops = {op};
  step.functions = {
      {{{WorkKind::kAttention, 0, false, 0.5, {0, 1, 2}, {3}}}, {0}}};
  step.runs = {{0, false, {0}, {0}}};
  step.layers = {"attention"};
  step.dims = {{"B", "N"}};
  StepMapping heads{
      {"N"}, std::vector<core::Sharding>(4, core::Replicated(4)), false};
  for (int value = 0; value < 4; ++value) {
    step.units.push_back(step.graph.values[value].shape);
    heads.shardings[value].dims[1] = Over(1, 1);
  }
  step.mappings = {
      {{"B"}, std::vector<core::Sharding>(4, core::Replicated(4)), false},
      heads};
  Cluster cluster = *BuiltInCluster("2x a100-80-sxm");
  // A device has half of the heads, and half of the pairs are visible.
  const double pairs = kImages * kHeads / 2 * kRows * kKeys * 0.5;
  const auto compute = [&] {
    return TabulateStep(step, cluster, Precision::kF32, 1, 2)
        .costs[0][1]
        .compute;
  };
  const auto time = [&](double of_keys, double of_values) {
    return AttentionTime(cluster.device, Precision::kF32,
                         2 * pairs * (of_keys * 64 + of_values * 32));
  };
  EXPECT_NEAR(compute(), time(1, 1), 1e-12);
  step.functions[0].works[0].backward = true;
  EXPECT_NEAR(compute(), time(3, 2), 1e-12);
}

// Factors are rows, experts per row, experts, and the widths of x, of the
// hidden layer and of the result. With half of the hidden layer on a device,
// each row has half of its products there, however many experts there are.
TEST(StepGraph, ExpertsAreTheProductsOfTheirRows) {
  constexpr int64_t kRows = 1 << 14, kChosen = 2, kIn = 512, kInner = 2048,
                    kOut = 256;
  const Cluster cluster = *BuiltInCluster("2x a100-80-sxm");
  std::vector<double> forward;
  for (const int64_t experts : {8, 32}) {
    StepGraph step;
    step.graph.mesh.axes = {{"data", 2}, {"tensor", 2}};
    const std::vector<std::vector<int64_t>> shapes = {
        {kRows, kIn},           {kRows, kChosen},       {kRows, kChosen},
        {experts, kInner, kIn}, {experts, kInner, kIn}, {experts, kOut, kInner},
        {kRows, kOut}};
    for (const std::vector<int64_t>& shape : shapes)
      step.graph.values.emplace_back().shape = shape;
    step.units = shapes;
    core::Op op;
    op.rule.factors = {
        {kRows, FactorKind::kCarried},   {kChosen, FactorKind::kWhole},
        {experts, FactorKind::kReduced}, {kIn, FactorKind::kWhole},
        {kInner, FactorKind::kReduced},  {kOut, FactorKind::kCarried}};
    op.rule.operands = {{{0}, {3}},      {{0}, {1}},      {{0}, {1}},
                        {{2}, {4}, {3}}, {{2}, {4}, {3}}, {{2}, {5}, {4}}};
    op.rule.results = {{{0}, {5}}};
    op.rule.experts = 2;
    op.operands = {0, 1, 2, 3, 4, 5};
    op.results = {6};
    step.graph.ops = {op};
    step.functions = {
        {{{WorkKind::kExperts, 0, false, 1, op.operands, op.results}}, {0}}};
    step.runs = {{0, false, {0}, {0}}};
    step.layers = {"experts"};
    step.dims = {{"B", "M"}};
    const std::vector<core::Sharding> whole = {
        core::Replicated(2), core::Replicated(2), core::Replicated(2),
        core::Replicated(3), core::Replicated(3), core::Replicated(3),
        core::Replicated(2)};
    StepMapping width{{"M"}, whole, false};
    for (auto [value, dim] : {std::pair(3, 1), {4, 1}, {5, 2}})
      width.shardings[value].dims[dim] = Over(1, 1);
    step.mappings = {{{"B"}, whole, false}, width};
    const auto compute = [&] {
      return TabulateStep(step, cluster, Precision::kF32, 1, 2)
          .costs[0][1]
          .compute;
    };
    const auto time = [&](int64_t m, int64_t n, int64_t k) {
      return MatmulTime(cluster.device, Precision::kF32, experts, m, n, k);
    };
    const int64_t each = kRows * kChosen / experts, inner = kInner / 2;
    const double up = time(each, inner, kIn), down = time(each, kOut, inner);
    EXPECT_NEAR(compute(), 2 * up + down, 1e-9);
    forward.push_back(compute());
    step.functions[0].works[0].backward = true;
    // The hidden layer is computed again.
    EXPECT_NEAR(compute(),
                2 * (up + time(each, kIn, inner) + time(inner, kIn, each)) +
                    time(each, inner, kOut) + time(kOut, inner, each),
                1e-9);
  }
  EXPECT_NEAR(forward[1], forward[0], 0.05 * forward[0]);
}

// A convolution over 3 rows, with images divided by rows, takes two rows from
// its neighbours.
TEST(StepGraph, HalosAreExchanged) {
  StepGraph step;
  step.graph.mesh.axes = {{"data", 2}, {"tensor", 2}};
  core::Value image, weight;
  image.shape = {4, 64, 32};
  weight.shape = {64, 64, 3};
  step.graph.values = {image, weight, image};
  core::Op op;
  op.rule.factors = {{4, FactorKind::kCarried},
                     {64, FactorKind::kCarried},
                     {64, FactorKind::kReduced},
                     {32, FactorKind::kHalo},
                     {3, FactorKind::kWhole}};
  op.rule.operands = {{{0}, {2}, {3}}, {{1}, {2}, {4}}};
  op.rule.results = {{{0}, {1}, {3}}};
  op.operands = {0, 1};
  op.results = {2};
  step.graph.ops = {op};
  step.halos = {{0, 3, 2}};
  step.functions = {
      {{{WorkKind::kConvolution, 0, false, 1, {0, 1}, {2}}}, {0}}};
  step.runs = {{0, false, {0}, {0}}};
  step.layers = {"conv"};
  step.dims = {{"B", "H"}};
  step.units = {image.shape, weight.shape, image.shape};
  step.batch = 4;
  StepMapping batch{
      {"B"}, std::vector<core::Sharding>(3, core::Replicated(3)), true};
  StepMapping rows{{"H"}, batch.shardings, false};
  for (int value : {0, 2}) {
    batch.shardings[value].dims[0].axes = {{0, 1, 2, 1}, {1, 1, 2, 1}};
    rows.shardings[value].dims[0] = Over(0, 1);
    rows.shardings[value].dims[2] = Over(1, 2);
  }
  step.mappings = {batch, rows};
  const Cluster cluster = *BuiltInCluster("4x a100-80-sxm");
  const LayerTable table = TabulateStep(step, cluster, Precision::kF32, 2, 2);
  EXPECT_EQ(table.costs[0][0].collectives, 0);
  EXPECT_NEAR(table.costs[0][1].collectives,
              CollectiveTime(cluster, CollectiveKind::kExchange,
                             2 * 4.0 * 2 * 64, ShapeOfStride(cluster, 1, 2)),
              1e-9);
}

}  // namespace
}  // namespace partita::planner
