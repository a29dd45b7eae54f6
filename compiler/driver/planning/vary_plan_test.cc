#include "compiler/driver/planning/vary_plan.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "compiler/core/mesh.h"
#include "compiler/driver/planning/batch_parts.h"
#include "compiler/plan/plan.h"
#include "compiler/planner/search/search.h"
#include "gtest/gtest.h"

namespace partita::driver {
namespace {

plan::Plan parse(const std::string& text) {
  auto plan = plan::ParsePlan(text, "plan");
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return plan.ok() ? *plan : plan::Plan();
}

std::set<std::string> textsOf(const std::vector<plan::Plan>& plans) {
  std::set<std::string> texts;
  for (const plan::Plan& plan : plans) texts.insert(plan::WritePlan(plan));
  return texts;
}

constexpr char kDivided[] =
    "mesh: {data: 4, tensor: 2}\n"
    "shard:\n"
    "  - {B: data}\n"
    "  - {M: tensor, N: tensor, V: tensor}\n"
    "zero: 1\n"
    "microbatches: 2\n"
    "precision: bf16\n";

TEST(VaryPlanTest, EachVariationIsAnotherPlanOfAsManyDevices) {
  const plan::Plan plan = parse(kDivided);
  const std::vector<plan::Plan> made = variationsOf(plan, 64, {});
  EXPECT_GE(made.size(), 8u);
  EXPECT_EQ(textsOf(made).size(), made.size());
  for (const plan::Plan& each : made) {
    const std::string text = plan::WritePlan(each);
    EXPECT_NE(text, plan::WritePlan(plan));
    EXPECT_EQ(each.mesh.Size(), 8) << text;
    EXPECT_EQ(plan::WritePlan(parse(text)), text);
  }
}

TEST(VaryPlanTest, MovesHalfOfAnAxisToANewPipeline) {
  const auto texts = textsOf(variationsOf(parse(kDivided), 64, {}));
  const plan::Plan wanted = parse(
      "mesh: {pipe: 2, data: 2, tensor: 2}\n"
      "shard:\n"
      "  - {B: data, D: pipe}\n"
      "  - {M: tensor, N: tensor, V: tensor}\n"
      "zero: 1\n"
      "microbatches: 8\n"
      "schedule: 1f1b\n"
      "precision: bf16\n");
  EXPECT_TRUE(texts.count(plan::WritePlan(wanted)))
      << *texts.begin() << "..." << *texts.rbegin();
}

TEST(VaryPlanTest, PipelinesHaveTheBatchOverWhatRemains) {
  const std::vector<plan::Plan> made = pipelinesLike(parse(kDivided), 32, {});
  ASSERT_EQ(made.size(), 3u);
  EXPECT_EQ(plan::WritePlan(made[0]),
            "mesh: {pipe: 2, data: 4}\n"
            "shard:\n"
            "  - {B: data, D: pipe}\n"
            "zero: 1\n"
            "microbatches: 8\n"
            "schedule: 1f1b\n"
            "precision: bf16\n");
  EXPECT_EQ(plan::WritePlan(made[2]),
            "mesh: {pipe: 8}\n"
            "shard:\n"
            "  - {D: pipe}\n"
            "microbatches: 32\n"
            "schedule: 1f1b\n"
            "precision: bf16\n");
}

TEST(VaryPlanTest, FixedChoicesStay) {
  planner::FixedChoices fixed;
  fixed.zero = 1;
  fixed.tp = 2;
  fixed.microbatch = 8;
  for (const plan::Plan& each : variationsOf(parse(kDivided), 64, fixed)) {
    const std::string text = plan::WritePlan(each);
    EXPECT_EQ(each.zero, 1) << text;
    EXPECT_EQ(64 / batchParts(each) / each.microbatches, 8) << text;
    EXPECT_NE(text.find("tensor: 2"), std::string::npos) << text;
  }
}

TEST(VaryPlanTest, MovesStatesToTheHostWhereAskedAndBackAlways) {
  plan::Plan plan = parse(kDivided);
  const auto offloaded = [&](const planner::FixedChoices& fixed,
                             bool offloads) {
    int count = 0;
    for (const plan::Plan& each : variationsOf(plan, 64, fixed, offloads))
      count += each.offload == plan::Offload::kOptimizer;
    return count;
  };
  EXPECT_EQ(offloaded({}, false), 0);
  EXPECT_EQ(offloaded({}, true), 1);
  planner::FixedChoices fixed;
  fixed.offload = false;
  EXPECT_EQ(offloaded(fixed, true), 0);
  // Exactly one variation moves the states back from the host.
  plan.offload = plan::Offload::kOptimizer;
  const int all = static_cast<int>(variationsOf(plan, 64, {}).size());
  EXPECT_EQ(offloaded({}, false), all - 1);
  // Also in plans by layer, whose entries are for parts of the model.
  plan = parse(
      "mesh: {data: 2, tensor: 2}\n"
      "shard:\n"
      "  - {B: data}\n"
      "  - {H: tensor, at: \"stages.0.*\"}\n");
  EXPECT_EQ(offloaded({}, true), 1);
}

TEST(VaryPlanTest, PipelinesHaveWhatIsFixed) {
  planner::FixedChoices fixed;
  fixed.dp = 2;
  fixed.zero = 3;
  fixed.microbatch = 4;
  fixed.recompute = planner::Recomputation::kFull;
  fixed.schedules = {planner::PipelineSchedule::kGpipe};
  const std::vector<plan::Plan> made =
      pipelinesLike(parse(kDivided), 32, fixed);
  ASSERT_EQ(made.size(), 1u);
  EXPECT_EQ(plan::WritePlan(made[0]),
            "mesh: {pipe: 4, data: 2}\n"
            "shard:\n"
            "  - {B: data, D: pipe}\n"
            "zero: 3\n"
            "microbatches: 4\n"
            "schedule: gpipe\n"
            "recompute: full\n"
            "precision: bf16\n");
}

TEST(VaryPlanTest, MicrobatchesDivideTheSamplesOfADevice) {
  // Six samples on each of four devices: six microbatches, or one.
  plan::Plan plan = parse(kDivided);
  plan.microbatches = 3;
  std::set<int64_t> counts;
  for (const plan::Plan& each : variationsOf(plan, 24, {}))
    if (plan::ToString(each.mesh) == plan::ToString(plan.mesh))
      counts.insert(each.microbatches);
  EXPECT_EQ(counts, (std::set<int64_t>{1, 3, 6}));
}

TEST(VaryPlanTest, ZeroGoesWithTheAxesOfTheBatch) {
  const plan::Plan plan = parse(
      "mesh: {data: 2}\n"
      "shard: [{B: data}]\n"
      "zero: 2\n");
  for (const plan::Plan& each : variationsOf(plan, 8, {})) {
    const bool divides =
        std::any_of(each.mesh.axes.begin(), each.mesh.axes.end(),
                    [](const core::Axis& axis) { return axis.name == "data"; });
    EXPECT_TRUE(divides || each.zero == 0) << plan::WritePlan(each);
  }
}

TEST(VaryPlanTest, RingsWhereTheSequenceIsDivided) {
  const std::string text = R"(mesh: {data: 2, context: 4}
shard:
  - {B: data}
  - {L: context}
)";
  EXPECT_EQ(textsOf(variationsOf(parse(text), 8, {}))
                .count(text + "attention: ring\n"),
            1u);
  EXPECT_EQ(textsOf(variationsOf(parse(text + "attention: ring\n"), 8, {}))
                .count(text),
            1u);
  for (const plan::Plan& each : variationsOf(parse(kDivided), 64, {}))
    EXPECT_FALSE(each.attention);
  EXPECT_EQ(describePlan(parse(text + "attention: ring\n")),
            "data 2 x context 4: B data, L context; attention ring");
}

}  // namespace
}  // namespace partita::driver
