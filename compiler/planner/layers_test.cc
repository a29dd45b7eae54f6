#include "compiler/planner/layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace partita::planner {
namespace {

using ::testing::HasSubstr;

// CoAtNet's halves: a stage of convolutions on many rows and few weights, and
// one of attention on few rows and many weights.
LayerSpec Convolution(int stage, int64_t rows) {
  LayerSpec layer;
  layer.name = "stages." + std::to_string(stage);
  const double channels = 96 << stage, pixels = double(rows) * rows;
  layer.flops = 2 * pixels * channels * 4 * channels * 2;
  layer.parameters = 8 * channels * channels;
  layer.input = pixels * channels;
  layer.traffic = 30 * pixels * channels;
  layer.kept = 12 * pixels * channels;
  layer.halo = 2 * double(rows) * channels * 4;
  layer.reduced = layer.input;
  layer.rows = rows;
  layer.heads = 1;
  return layer;
}

LayerSpec Attention(int64_t width, int64_t heads, int64_t tokens) {
  LayerSpec layer;
  layer.name = "stages.3";
  layer.flops = 24.0 * tokens * width * width;
  layer.parameters = 12.0 * width * width;
  layer.input = double(tokens) * width;
  layer.traffic = 20 * layer.input;
  layer.kept = 16 * layer.input;
  layer.reduced = 2 * layer.input;
  layer.rows = 1;
  layer.heads = heads;
  return layer;
}

double BruteForce(const LayerProblem& problem) {
  double best = 0;
  const int devices = problem.cluster.devices;
  const size_t layers = problem.layers.size();
  int combinations = 1;
  for (size_t i = 0; i < layers; ++i) combinations *= kMappings;
  for (int data = 1; data <= devices; ++data)
    for (int inner = 1; inner <= devices; ++inner)
      for (int code = 0; code < combinations; ++code) {
        if (data * inner != devices) continue;
        LayerDivision division;
        division.data = data;
        division.inner = inner;
        for (int rest = code, i = 0; i < static_cast<int>(layers);
             ++i, rest /= kMappings)
          division.mappings.push_back(static_cast<Mapping>(rest % kMappings));
        const auto found = EvaluateLayers(problem, division);
        if (found.ok() && found->fits && (best == 0 || found->step < best))
          best = found->step;
      }
  return best;
}

TEST(SearchLayers, IsExactOfSmallProblems) {
  std::mt19937 random(11);
  const auto one_of = [&](std::vector<int64_t> values) {
    return values[random() % values.size()];
  };
  int found = 0, mixed = 0, tight = 0;
  for (int i = 0; i < 200; ++i) {
    LayerProblem problem;
    problem.cluster =
        *BuiltInCluster(std::to_string(one_of({1, 2, 4, 6, 8})) + "x " +
                        (random() % 2 ? "a100-80-sxm" : "v100-32-sxm2"));
    problem.precision = Precision::kF16;
    problem.batch = one_of({1, 2, 4, 8, 12, 64});
    for (int64_t layers = one_of({1, 2, 3, 4, 5, 6}); layers > 0; --layers) {
      if (random() % 2)
        problem.layers.push_back(
            Convolution(random() % 3, one_of({7, 28, 56, 112})));
      else
        problem.layers.push_back(Attention(
            one_of({768, 1536, 6144}), one_of({3, 8, 24}), one_of({49, 196})));
    }
    problem.memory = double(one_of({1, 3, 10, 30, 80})) * 1e9;
    const double best = BruteForce(problem);
    const absl::StatusOr<LayerResult> result = SearchLayers(problem);
    if (best == 0) {
      EXPECT_FALSE(result.ok()) << i;
      ++tight;
      continue;
    }
    ASSERT_TRUE(result.ok()) << i << ": " << result.status();
    EXPECT_NEAR(result->best.prediction.step, best, 1e-9 * best) << i;
    ++found;
    const auto& mappings = result->best.division.mappings;
    for (Mapping mapping : mappings) mixed += mapping != mappings.front();
  }
  EXPECT_GE(found, 120);
  EXPECT_GE(mixed, 20);
  EXPECT_GE(tight, 10);
}

// A batch of less than the devices: convolutions by rows, attention by heads;
// better than any one of them everywhere.
TEST(SearchLayers, DividesTheHalvesOfACoatnetDifferently) {
  LayerProblem problem;
  problem.cluster = *BuiltInCluster("8x a100-80-sxm");
  problem.batch = 4;
  for (int i = 0; i < 2; ++i) problem.layers.push_back(Convolution(0, 112));
  for (int i = 0; i < 2; ++i) problem.layers.push_back(Convolution(1, 56));
  for (int i = 0; i < 4; ++i)
    problem.layers.push_back(Attention(3072, 48, 196));
  const absl::StatusOr<LayerResult> result = SearchLayers(problem);
  ASSERT_TRUE(result.ok()) << result.status();
  const LayerChoice& best = result->best;
  EXPECT_EQ(best.division.mappings.front(), Mapping::kSpatial);
  EXPECT_EQ(best.division.mappings.back(), Mapping::kTensor);
  EXPECT_GT(best.prediction.boundaries, 0);
  EXPECT_LT(best.prediction.step, 0.8 * result->uniform.prediction.step);
  // With images enough, all can be divided by them: that is compared, too.
  problem.batch = 64;
  const absl::StatusOr<LayerResult> many = SearchLayers(problem);
  ASSERT_TRUE(many.ok()) << many.status();
  EXPECT_GT(many->uniform.prediction.step, 0);
  EXPECT_LE(many->best.prediction.step, many->uniform.prediction.step);
}

// arXiv 2106.04803, Table 3, on images of 224 x 224.
std::vector<LayerSpec> Coatnet7() {
  std::vector<LayerSpec> layers;
  const auto convolutions = [&](int count, double channels, int64_t rows) {
    LayerSpec layer = Convolution(0, rows);
    const double pixels = double(rows) * rows;
    layer.flops = 2 * pixels * channels * 4 * channels * 2;
    layer.parameters = 8 * channels * channels;
    layer.input = layer.reduced = pixels * channels;
    layer.traffic = 30 * layer.input;
    layer.kept = 12 * layer.input;
    layer.halo = 2 * double(rows) * channels * 4;
    layers.insert(layers.end(), count, layer);
  };
  convolutions(2, 192, 112);
  convolutions(2, 256, 56);
  convolutions(4, 512, 28);
  convolutions(8, 1024, 14);
  layers.insert(layers.end(), 42, Attention(2048, 64, 196));
  layers.insert(layers.end(), 2, Attention(3072, 96, 49));
  return layers;
}

TEST(SearchLayers, DividesCoatnet7Over256Devices) {
  LayerProblem problem;
  problem.cluster = *BuiltInCluster("256x a100-80-sxm");
  problem.layers = Coatnet7();
  double parameters = 0;
  for (const LayerSpec& layer : problem.layers) parameters += layer.parameters;
  EXPECT_NEAR(parameters, 2.44e9, 0.05 * 2.44e9);
  for (int64_t batch : {128, 4096}) {
    problem.batch = batch;
    const absl::StatusOr<LayerResult> result = SearchLayers(problem);
    ASSERT_TRUE(result.ok()) << result.status();
    const LayerChoice& best = result->best;
    EXPECT_LE(best.prediction.step, result->uniform.prediction.step);
    // Fewer images than devices.
    if (batch == 128) {
      EXPECT_EQ(best.division.mappings.front(), Mapping::kSpatial);
      EXPECT_EQ(best.division.mappings.back(), Mapping::kTensor);
      EXPECT_GT(best.prediction.boundaries, 0);
    }
  }
}

// What nothing divides, every device computes.
TEST(SearchLayers, ComputesWhatIsTooSmallWhole) {
  LayerProblem problem;
  problem.cluster = *BuiltInCluster("8x a100-80-sxm");
  problem.layers = {Attention(768, 3, 49)};
  EXPECT_EQ(SearchLayers(problem)->best.division.mappings,
            std::vector<Mapping>{Mapping::kWhole});
}

TEST(SearchLayers, SaysWhatIsWrong) {
  LayerProblem problem;
  problem.cluster = *BuiltInCluster("8x a100-80-sxm");
  problem.batch = 64;
  EXPECT_THAT(std::string(SearchLayers(problem).status().message()),
              HasSubstr("expected layers, found none"));
  problem.layers = {Attention(6144, 48, 196)};
  problem.memory = 0.5e9;
  EXPECT_THAT(std::string(SearchLayers(problem).status().message()),
              HasSubstr("expected a division within 0.5 GB a device, found "
                        "none: the least is "));
  LayerDivision division;
  division.data = division.inner = 2;
  EXPECT_THAT(std::string(EvaluateLayers(problem, division).status().message()),
              HasSubstr("8 devices and 1 mappings, found 2 x 2 and 0"));
}

}  // namespace
}  // namespace partita::planner
