#include "runtime/executor/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace partita::executor {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ProfileTest, LayersEndBehindNumbers) {
  EXPECT_EQ(LayerOf("transformer.h.0.attn.c_attn"), "transformer.h.0");
  EXPECT_EQ(LayerOf("h.11"), "h.11");
  EXPECT_EQ(LayerOf("stages.1.blocks.0.conv1.weight"), "stages.1.blocks.0");
  EXPECT_EQ(LayerOf("stages.1.stem.conv.2"), "stages.1");
  EXPECT_EQ(LayerOf("wte.weight"), "wte.weight");
  EXPECT_EQ(LayerOf(""), "");
}

TEST(ProfileTest, AddsUpByNameAndByLayer) {
  Profile profile({{"gemm", "h.0.mlp.up", 6},
                   {"add", "h.0.mlp.down"},
                   {"gemm", "h.1.mlp.up", 6},
                   {"copy", ""}});
  for (int run = 0; run < 2; ++run) {
    for (int step = 0; step < 4; ++step)
      profile.Add(step, 1'000'000 * (step + 1));
    profile.CountRun();
  }
  const std::vector<ProfileRow> names = profile.Rows();
  ASSERT_EQ(names.size(), 3u);
  EXPECT_EQ(names[2].name, "add");
  const std::vector<ProfileRow> layers = profile.LayerRows();
  ASSERT_EQ(layers.size(), 3u);
  EXPECT_EQ(layers[0].name, "");
  EXPECT_DOUBLE_EQ(layers[0].milliseconds, 4);
  for (const ProfileRow& row : layers) {
    if (row.name == "h.0") {
      EXPECT_EQ(row.calls, 2);
      EXPECT_DOUBLE_EQ(row.milliseconds, 3);
      EXPECT_DOUBLE_EQ(row.median_milliseconds, 3);
      EXPECT_DOUBLE_EQ(row.flops, 6);
    }
  }
  const std::string text = profile.ToString();
  EXPECT_THAT(text, HasSubstr("layer         calls         ms   share\n"
                              "(no layer)        1      4.000   40.0%\n"));
  EXPECT_THAT(text, HasSubstr("h.0               2      3.000   30.0%\n"));
}

TEST(ProfileTest, ComparesWithLimits) {
  StepLabel product{"gemm", ""};
  product.flops = 5e6;
  product.bytes = 1e6;
  product.precision = "f32";
  StepLabel sum{"add", ""};
  sum.bytes = 1e6;
  Profile profile({product, sum});
  profile.Add(0, 1'000'000);  // 5 GFLOP/s, 1 GB/s
  profile.Add(1, 500'000);    // 2 GB/s
  profile.CountRun();
  const MachineLimits limits{{{"f32", 1e10}}, 4e9};
  const std::string text = profile.ToString(&limits);
  EXPECT_THAT(text, HasSubstr("    GB/s  % peak   % mem\n"));
  EXPECT_THAT(text, HasSubstr("     1.0     50%     25%\n"));
  EXPECT_THAT(text, HasSubstr("     2.0             50%\n"));
  EXPECT_THAT(profile.ToString(), Not(HasSubstr("% mem")));
  EXPECT_THAT(profile.ToString(), Not(HasSubstr("peak")));
}

TEST(ProfileTest, WithoutLayersThereIsOneTable) {
  Profile profile({{"copy", ""}, {"add", ""}});
  profile.Add(0, 5);
  profile.CountRun();
  EXPECT_THAT(profile.ToString(), Not(HasSubstr("layer")));
}

}  // namespace
}  // namespace partita::executor
