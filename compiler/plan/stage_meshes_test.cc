#include <string>
#include <vector>

#include "compiler/plan/plan_schedule.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace partita::plan {
namespace {

using testing::ElementsAre;

absl::StatusOr<Plan> Divided(const std::string& text) {
  const absl::StatusOr<Plan> plan = ParsePlan(text, "p.yaml");
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return DivideStages(*plan);
}

std::vector<std::string> EntriesOf(const std::string& text) {
  const absl::StatusOr<Plan> plan = Divided(text);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  std::vector<std::string> entries;
  if (!plan.ok()) return entries;
  for (const Stage& stage : plan->stages) EXPECT_FALSE(stage.mesh.has_value());
  for (const Entry& entry : plan->shard)
    entries.push_back(ToString(plan->mesh, entry));
  return entries;
}

std::string RefusalOf(const std::string& text) {
  return std::string(Divided(text).status().message());
}

TEST(DivideStages, LeavesPlansWithoutThemAlone) {
  const std::string text =
      "mesh:\n  {pipe: 2, data: 4}\nshard:\n  - {B: data, D: pipe}\n"
      "stages: [{to: a}, {to: b}]\n";
  EXPECT_EQ(WritePlan(*Divided(text)), WritePlan(*ParsePlan(text, "p.yaml")));
}

TEST(DivideStages, AxesOfOtherSizesAreParts) {
  EXPECT_THAT(
      EntriesOf("mesh: {data: 4, pipe: 3, tensor: 2}\n"
                "shard: [{B: data, D: pipe}, {M: tensor, at: \"*.mlp\"}]\n"
                "stages: [{to: a}, {to: b, mesh: {data: 2, tensor: 4}}, "
                "{to: c, mesh: {data: 4, tensor: 2}}]\n"),
      ElementsAre("{D: pipe}", "{stage: [0, 2], B: data}",
                  "{stage: 1, B: data:(1)2}",
                  "{stage: [0, 2], at: \"*.mlp\", M: tensor}",
                  "{stage: 1, at: \"*.mlp\", M: [data:(2)2, tensor]}"));
}

TEST(DivideStages, AxesThatAStageLacksDivideNothingThere) {
  // The first stage divides only the batch, the second only the width.
  EXPECT_THAT(
      EntriesOf("mesh: {pipe: 2, data: 4, tensor: 1}\n"
                "shard: [{D: pipe}, {B: data, M: tensor}]\n"
                "stages: [{to: a, mesh: {data: 4}}, "
                "{to: b, mesh: {tensor: 4}}]\n"),
      ElementsAre("{D: pipe}", "{stage: 0, B: data}", "{stage: 1, M: data}"));
}

TEST(DivideStages, TheOrderOfAStagesAxesCounts) {
  EXPECT_THAT(EntriesOf("mesh: {pipe: 2, data: 2, tensor: 2}\n"
                        "shard: [{D: pipe}, {B: data, M: tensor}]\n"
                        "stages: [{to: a}, {to: b, mesh: {tensor: 2, "
                        "data: 2}}]\n"),
              ElementsAre("{D: pipe}", "{stage: 0, B: data, M: tensor}",
                          "{stage: 1, B: tensor, M: data}"));
}

TEST(DivideStages, EntriesOfAStageAreInItsMesh) {
  EXPECT_THAT(EntriesOf("mesh: {pipe: 2, data: 4, tensor: 1}\n"
                        "shard: [{D: pipe}, {M: tensor, stage: 1}]\n"
                        "stages: [{to: a}, {to: b, mesh: {data: 2, "
                        "tensor: 2}}]\n"),
              ElementsAre("{D: pipe}", "{stage: 1, M: data:(2)2}"));
}

TEST(DivideStages, OverridesNameNoStage) {
  EXPECT_NE(RefusalOf("mesh: {pipe: 2, data: 4}\nshard: [{D: pipe}]\nstages: "
                      "[{to: a}, {to: b, mesh: {data: 4}}]\noverrides: "
                      "[{tensor: w, sharding: \"[{data}]\"}]\n")
                .find("overrides: expected none where stages have meshes of "
                      "their own"),
            std::string::npos);
}

TEST(DivideStages, Refusals) {
  const auto refusal = [](const std::string& mesh, const std::string& stage,
                          const std::string& entry) {
    return RefusalOf("mesh: " + mesh + "\nshard: [{D: pipe}, " + entry +
                     "]\nstages: [{to: a}, {to: b, mesh: " + stage + "}]\n");
  };
  EXPECT_EQ(refusal("{pipe: 2, data: 4}", "{tensor: 4}", "{B: data}"),
            "p.yaml:3:19: stages mesh: expected axes of the plan's mesh "
            "without those of D (data), found 'tensor'; one that other stages "
            "lack is of size 1 there");
  EXPECT_EQ(refusal("{pipe: 2, data: 4}", "{pipe: 2, data: 2}", "{B: data}"),
            "p.yaml:3:19: stages mesh: expected axes of the plan's mesh "
            "without those of D (data), found 'pipe'; one that other stages "
            "lack is of size 1 there");
  EXPECT_EQ(refusal("{pipe: 2, data: 2, tensor: 3}", "{data: 3, tensor: 2}",
                    "{B: data}"),
            "p.yaml:3:19: stages mesh: expected axes that parts of the plan's "
            "{pipe: 2, data: 2, tensor: 3} make up, found {data: 3, tensor: "
            "2}, whose 'data' begins or ends within a part");
  EXPECT_EQ(refusal("{pipe: 2, data: 4}",
                    "{axes: {data: 4}, device_ids: [3, 2, 1, 0]}", "{B: data}"),
            "p.yaml:3:19: stages mesh: expected the devices of a stage in "
            "order, found device_ids; order them in the plan's mesh");
  EXPECT_EQ(refusal("{pipe: 2, data: 4, tensor: 2}", "{data: 2, tensor: 4}",
                    "{B: data:(1)2}"),
            "p.yaml:2:21: shard 'B': expected a whole axis, as a mesh of stage "
            "1 makes another of it (p.yaml:3:19), found 'data:(1)2'");
  EXPECT_EQ(RefusalOf("mesh: {pipe: 2, data: 4}\nshard: [{D: pipe}]\nstages: "
                      "[{to: a, mesh: {data: 2}}, {to: b, mesh: {data: 2}}]"),
            "p.yaml:3:10: stages mesh: expected 4 devices, as the plan's mesh "
            "has for a stage, found 2 in {data: 2}");
}

}  // namespace
}  // namespace partita::plan
