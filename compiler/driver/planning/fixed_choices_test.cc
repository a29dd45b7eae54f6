#include "compiler/driver/planning/fixed_choices.h"

#include <string>

#include "compiler/plan/plan.h"
#include "compiler/planner/search/search.h"
#include "gtest/gtest.h"

namespace partita::driver {
namespace {

using planner::FixedChoices;
using planner::PipelineSchedule;

std::string refusal(const FixedChoices& fixed) {
  return std::string(checkFixedOfLayers(fixed, 8, 12).message());
}

TEST(FixedChoicesTest, RefusesChoicesThatNoPlanByLayerHas) {
  EXPECT_EQ(refusal({}), "");
  FixedChoices fixed;
  fixed.cp = 2;
  EXPECT_EQ(refusal(fixed),
            "--fix cp: expected tp, pp, dp, vpp, zero, mbs, offload, recompute "
            "or schedule for a model that is planned by its layers: leave it "
            "out");
  fixed = {};
  fixed.sequence_parallel = false;
  EXPECT_EQ(refusal(fixed).substr(0, 18), "--fix sp: expected");
  fixed = {};
  fixed.tp = 3;
  EXPECT_EQ(refusal(fixed),
            "--fix tp: expected a divisor of the 8 devices, found 3");
  fixed.tp = 4;
  fixed.pp = 4;
  EXPECT_EQ(refusal(fixed),
            "--fix tp x pp x dp: expected a divisor of the 8 devices, found "
            "16");
  fixed.pp = 2;
  EXPECT_EQ(refusal(fixed), "");
  fixed.dp = 2;
  EXPECT_EQ(refusal(fixed),
            "--fix tp x pp x dp: expected the 8 devices, found 16");
  fixed = {};
  fixed.dp = 8;
  EXPECT_EQ(refusal(fixed),
            "--fix dp: expected a divisor of the batch's 12 samples, found 8");
  fixed = {};
  fixed.tp = fixed.pp = fixed.dp = 1;
  EXPECT_EQ(refusal(fixed),
            "--fix tp x pp x dp: expected the 8 devices, found 1");
  fixed = {};
  fixed.microbatch = 5;
  EXPECT_EQ(refusal(fixed),
            "--fix mbs: expected a divisor of the batch's 12 samples, found 5");
  fixed = {};
  fixed.zero = 4;
  EXPECT_EQ(refusal(fixed), "--fix zero: expected 0 to 3, found 4");
  fixed.zero = 1;
  fixed.dp = 1;
  EXPECT_EQ(refusal(fixed),
            "--fix zero: expected 0 with dp=1, as ZeRO divides states over the "
            "devices that divide the batch, found 1");
  fixed = {};
  fixed.vpp = 2;
  EXPECT_EQ(refusal(fixed),
            "--fix vpp: expected 1 without pp=2 or more, found 2");
  fixed.pp = 2;
  EXPECT_EQ(refusal(fixed), "");
  fixed.schedules = {PipelineSchedule::kGpipe};
  EXPECT_EQ(refusal(fixed),
            "--fix vpp: expected the 1 stages per rank of this schedule, found "
            "2");
}

TEST(FixedChoicesTest, AreComparedWithAPlan) {
  auto plan = plan::ParsePlan(
      "mesh: {pipe: 2, data: 2, tensor: 2}\n"
      "shard:\n"
      "  - {B: data, D: pipe}\n"
      "  - {H: tensor, at: \"stages.0.*\"}\n"
      "zero: 1\n"
      "microbatches: 4\n"
      "schedule: interleaved(2)\n"
      "recompute: full\n"
      "offload: optimizer\n",
      "plan");
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  const auto keeps = [&](const auto& set) {
    FixedChoices fixed;
    set(fixed);
    return keepsTo(*plan, fixed, 16);
  };
  EXPECT_TRUE(keepsTo(*plan, {}, 16));
  for (const int size : {1, 2}) {
    EXPECT_EQ(keeps([&](FixedChoices& fixed) { fixed.tp = size; }), size == 2);
    EXPECT_EQ(keeps([&](FixedChoices& fixed) { fixed.pp = size; }), size == 2);
    EXPECT_EQ(keeps([&](FixedChoices& fixed) { fixed.dp = size; }), size == 2);
    EXPECT_EQ(keeps([&](FixedChoices& fixed) { fixed.vpp = size; }), size == 2);
    EXPECT_EQ(keeps([&](FixedChoices& fixed) { fixed.cp = size; }), size == 1);
    EXPECT_EQ(keeps([&](FixedChoices& fixed) { fixed.zero = size; }),
              size == 1);
    EXPECT_EQ(keeps([&](FixedChoices& fixed) { fixed.microbatch = size; }),
              size == 2);
  }
  EXPECT_TRUE(keeps([](FixedChoices& fixed) { fixed.offload = true; }));
  EXPECT_FALSE(keeps([](FixedChoices& fixed) { fixed.offload = false; }));
  EXPECT_TRUE(keeps([](FixedChoices& fixed) {
    fixed.recompute = planner::Recomputation::kFull;
  }));
  EXPECT_FALSE(keeps([](FixedChoices& fixed) {
    fixed.recompute = planner::Recomputation::kNone;
  }));
  EXPECT_TRUE(keeps([](FixedChoices& fixed) {
    fixed.schedules = {PipelineSchedule::k1F1B};
  }));
  EXPECT_FALSE(keeps([](FixedChoices& fixed) {
    fixed.schedules = {PipelineSchedule::kZbH1};
  }));
}

TEST(FixedChoicesTest, AreAppliedToAPlan) {
  auto plan =
      plan::ParsePlan("mesh: {data: 4}\nshard:\n  - {B: data}\n", "plan");
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  FixedChoices fixed;
  fixed.zero = 2;
  fixed.microbatch = 2;
  fixed.offload = true;
  fixed.recompute = planner::Recomputation::kNone;
  applyFixed(fixed, 16, *plan);
  EXPECT_EQ(plan::WritePlan(*plan),
            "mesh: {data: 4}\n"
            "shard:\n"
            "  - {B: data}\n"
            "zero: 2\n"
            "microbatches: 2\n"
            "recompute: none\n"
            "offload: optimizer\n");
  EXPECT_TRUE(keepsTo(*plan, fixed, 16));
}

}  // namespace
}  // namespace partita::driver
