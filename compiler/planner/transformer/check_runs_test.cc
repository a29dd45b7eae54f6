#include "compiler/planner/transformer/check_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/planner/transformer/test_models.h"

namespace partita::planner {
namespace {

using core::Precision;
using ::testing::HasSubstr;

TEST(CheckRuns, SaysWhatDoesNotGoTogether) {
  const Cluster cluster = *BuiltInCluster("64x a100-80-sxm");
  const auto refusal = [&](const Architecture& a, const Division& d) {
    return std::string(CheckRuns(a, d, cluster).message());
  };
  const Architecture model = Gpt(24, 2048, 16);
  EXPECT_EQ(refusal(model, Divide(3, 1, 1, 1, 8)),
            "heads of 16 does not divide by tp 3");
  EXPECT_EQ(refusal(model, Divide(1, 1, 4, 4, 8)),
            "gbs of 8 does not divide by mbs x dp 16");
  EXPECT_EQ(refusal(model, Divide(1, 32, 1, 1, 64)),
            "24 layers are fewer than pp x vpp 32");
  EXPECT_EQ(refusal(model, Divide(1, 1, 128, 1, 128)),
            "expected at most the 64 devices of a100-80-sxm, found 128");
  Division d = Divide(2, 2, 2, 1, 8);
  d.devices = 16;
  EXPECT_EQ(refusal(model, d),
            "tp 2 x pp 2 x dp 2 x cp 1 are not the 16 devices");
  d = Divide(1, 1, 1, 1, 8);
  d.precision = Precision::kF8;
  EXPECT_EQ(refusal(model, d),
            "a100-80-sxm has no f8 matrix products, it has a peak of f32, bf16 "
            "and f16: take such a precision, or add one of f8 to the device's "
            "peak in a cluster file");
  Cluster nameless = *BuiltInCluster("a100-80-sxm");
  nameless.device.name.clear();
  nameless.device.peak = {0, 1e12, 0, 0};
  d.precision = Precision::kF32;
  EXPECT_THAT(
      std::string(CheckRuns(model, d, nameless).message()),
      HasSubstr("this device has no f32 matrix products, it has a peak of "
                "bf16: "));
  d = Divide(1, 2, 1, 1, 8);
  d.schedule = PipelineSchedule::kZbV;
  EXPECT_EQ(refusal(model, d), "vpp: expected 2 of zb-v, found 1");
  d.schedule = PipelineSchedule::k1F1B;
  d.cut = {12, 11};
  EXPECT_EQ(refusal(model, d),
            "cut: expected 2 stages of 1 layer and more (the ends 0), 24 in "
            "all, found 2 of "
            "23");
  d = Divide(1, 2, 2, 1, 8);
  d.offload = true;
  EXPECT_EQ(std::string(CheckRuns(model, d, *BuiltInCluster("cpu")).message()),
            "expected at most the 2 devices of cpu, found 4");
  d = Divide(1, 1, 2, 1, 8);
  d.offload = true;
  d.precision = Precision::kF32;
  EXPECT_EQ(std::string(CheckRuns(model, d, *BuiltInCluster("cpu")).message()),
            "offload: expected a device with a host_bandwidth, found none of "
            "cpu");
}

}  // namespace
}  // namespace partita::planner
