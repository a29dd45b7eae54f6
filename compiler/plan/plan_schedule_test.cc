// Tests that plans become schedules, and that mismatches are refused at their
// field.
#include "compiler/plan/plan_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "compiler/core/schedule_csv.h"
#include "compiler/core/schedule_generators.h"

namespace partita::plan {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr char kPipe[] = "mesh: {p: 2, d: 2}\nshard: [{D: p}, {B: d}]\n";

Plan Parse(const std::string& text, const std::string& origin = "p.yaml") {
  absl::StatusOr<Plan> plan = ParsePlan(text, origin);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *plan : Plan();
}

std::string Table(const std::string& text, bool trains = true) {
  const absl::StatusOr<core::Schedule> schedule =
      ScheduleOf(Parse(text), trains);
  return schedule.ok() ? core::WriteScheduleCsv(*schedule)
                       : std::string(schedule.status().message());
}

std::string Write(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path) << text;
  return path;
}

TEST(DepthAxes, AreThoseOfAllEntriesInOrder) {
  const Plan plan = Parse(
      "mesh: {a: 2, b: 3, c: 4, d: 2}\nshard: [{D: [c, a]}, {B: d}, {D: b}]\n");
  EXPECT_THAT(DepthAxes(plan), ElementsAre(core::WholeAxis(plan.mesh, 2),
                                           core::WholeAxis(plan.mesh, 0),
                                           core::WholeAxis(plan.mesh, 1)));
  EXPECT_THAT(DepthAxes(Parse("mesh: {a: 2}\nshard: [{B: a}]")), IsEmpty());
}

TEST(ScheduleOf, KindsAreThoseOfTheCore) {
  const std::string text = std::string(kPipe) + "microbatches: 4\n";
  EXPECT_EQ(Table(text),
            core::WriteScheduleCsv(core::OneForwardOneBackward(2, 4)));
  const auto table = [&](const std::string& kind) {
    return Table(text + "schedule: " + kind + "\n");
  };
  EXPECT_EQ(table("1f1b"), Table(text));
  EXPECT_EQ(table("gpipe"), core::WriteScheduleCsv(core::GPipe(2, 4)));
  EXPECT_EQ(table("interleaved(3)"),
            core::WriteScheduleCsv(core::Interleaved(2, 3, 4)));
  EXPECT_EQ(table("zb-h1"), core::WriteScheduleCsv(core::ZeroBubbleH1(2, 4)));
  EXPECT_EQ(table("zb-v"), core::WriteScheduleCsv(core::ZeroBubbleV(2, 4)));
  EXPECT_EQ(table("async"), core::WriteScheduleCsv(core::Async(2, 4)));
  EXPECT_EQ(table("async-2bw"), core::WriteScheduleCsv(*core::Async2bw(2, 4)));
}

TEST(ScheduleOf, WhereNothingIsTrainedTheBatchGoesThroughAtOnce) {
  EXPECT_EQ(Table(kPipe, false), "F0.0\nF1.0\n");
  EXPECT_EQ(Table(std::string(kPipe) + "schedule: zb-v\n", false),
            "F0.0,F3.0\nF1.0,F2.0\n");
  EXPECT_EQ(Table(std::string(kPipe) + "schedule: async\n", false),
            "F0.0\nF1.0\n");
}

TEST(ScheduleOf, TablesAreSoughtBesideThePlan) {
  const std::string path = Write("plan_schedule_own.csv",
                                 "F0.0,F3.0,B3.0,B0.0\nF1.0,F2.0,B2.0,B1.0");
  const Plan beside = Parse(std::string(kPipe) +
                                "schedule: plan_schedule_own.csv\n"
                                "stages: [{to: a}, {to: b}, {to: c}, {to: d}]",
                            testing::TempDir() + "/p.yaml");
  const absl::StatusOr<core::Schedule> schedule = ScheduleOf(beside, true);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_THAT(schedule->rank_of_stage, ElementsAre(0, 1, 1, 0));
  EXPECT_EQ(Table(std::string(kPipe) + "schedule: " + path + "\n", false),
            "F0.0,F3.0\nF1.0,F2.0\n");
}

TEST(ScheduleOf, TablesMustBeOfThePlan) {
  const auto refusal = [](const std::string& name, const std::string& table,
                          const std::string& more = "", bool trains = true) {
    // Messages shorten long paths, so the table is written to the working
    // directory.
    std::ofstream(name) << table;
    return Table(kPipe + ("schedule: " + name + "\n") + more, trains);
  };
  EXPECT_EQ(refusal("plan_schedule_1.csv", "F0.0,B0.0"),
            "p.yaml:3:11: schedule: expected a row for each of the 2 devices "
            "along D, found 1 in 'plan_schedule_1.csv'");
  EXPECT_EQ(
      refusal("plan_schedule_2.csv", "F0.0,B0.0\nF1.0,B1.0", "microbatches: 4"),
      "p.yaml:3:11: schedule: expected 4 microbatches, as the plan says, "
      "found 1 microbatch in 'plan_schedule_2.csv'; set microbatches: "
      "1");
  EXPECT_EQ(refusal("plan_schedule_3.csv", "F0.0\nF1.0"),
            "p.yaml:3:11: schedule: expected a table of forwards and backwards "
            "(B, or I and W), found forwards alone in 'plan_schedule_3.csv'");
  EXPECT_EQ(refusal("plan_schedule_4.csv", "F0.0,B0.0\nB1.0,F1.0"),
            "p.yaml:3:11: schedule: 'plan_schedule_4.csv': rank 1, cell 1 "
            "(B1.0): expected what it needs before it, found cell 2 (F1.0) "
            "after it");
  EXPECT_EQ(refusal("plan_schedule_5.csv", "F0.0,B0.0\nF1.0,X1.0"),
            "p.yaml:3:11: schedule: plan_schedule_5.csv:2: field 2: expected "
            "F, B, I or W with stage and microbatch, such as F0.3, of stages "
            "to 1023 and microbatches to 4095, found 'X1.0'");
  EXPECT_EQ(refusal("plan_schedule_6.csv", "F0.0,F0.1\nF1.0,F1.1", "", false),
            "p.yaml:3:11: schedule: expected 1 microbatch, as nothing is "
            "trained, found 2 microbatches in 'plan_schedule_6.csv'");
  EXPECT_EQ(refusal("plan_schedule_7.csv", "F0.0,B0.0\nF1.0,B1.0",
                    "stages: [{to: a}, {to: b}, {to: c}]"),
            "p.yaml:4:9: stages: expected 2, as the schedule has for 2 devices "
            "along D, found 3; list that many, or set it to auto");
  EXPECT_EQ(Table(std::string(kPipe) + "schedule: no/such.csv\n"),
            "p.yaml:3:11: schedule: expected a table to read, found no file "
            "'no/such.csv'");
}

TEST(ScheduleOf, Refusals) {
  EXPECT_EQ(Table("mesh: {d: 2}\nshard: [{B: d}]\nschedule: gpipe\n"),
            "p.yaml:3:11: schedule: expected devices along D, which run the "
            "stages of a pipeline, as shard: [{D: pipe}], found none; divide D "
            "or leave the field out");
  EXPECT_EQ(Table("mesh: {d: 2}\nshard: [{B: d}]\n"),
            "p.yaml:2:8: shard: expected devices along D, which run the stages "
            "of a pipeline, as shard: [{D: pipe}], found none; divide D");
  EXPECT_EQ(CheckPipeline(Parse("mesh: {d: 2}\nstages: [{to: a}]")).message(),
            "p.yaml:2:9: stages: expected devices along D, which run the "
            "stages of a pipeline, as shard: [{D: pipe}], found none; divide D "
            "or leave the field out");
  EXPECT_TRUE(CheckPipeline(Parse("mesh: {d: 2}\nshard: [{B: d}]")).ok());
  EXPECT_TRUE(CheckPipeline(Parse(kPipe)).ok());
  EXPECT_EQ(Table(std::string(kPipe) +
                  "schedule: interleaved(2)\nstages: [{to: a}, {to: b}]\n"),
            "p.yaml:4:9: stages: expected 4, as the schedule has for 2 devices "
            "along D, found 2; list that many, or set it to auto");
  EXPECT_EQ(Table(std::string(kPipe) +
                  "schedule: interleaved(60000)\nmicrobatches: 100000\n"),
            "p.yaml:3:11: schedule: expected a table of at most 1048576 cells, "
            "found 2 devices along D, 60000 stages each, 100000 microbatches");
  EXPECT_EQ(Table("mesh: {p: 4}\nshard: [{D: p}]\nschedule: async-2bw\n"),
            "p.yaml:3:11: schedule: async-2bw: with two versions of the "
            "weights on 4 stages expected at least 3 microbatches, found 1; "
            "take more microbatches, fewer stages, or schedule: async, which "
            "keeps more versions");
  EXPECT_EQ(Table("mesh: {p: 2, d: 2}\nshard: [{D: p}, {B: d, stage: 2}]\n"),
            "p.yaml:2:17: shard stage: expected a stage from 0 to 1 of the "
            "schedule's 2, found 2");
  EXPECT_EQ(CheckPipeline(Parse("mesh: {d: 2}\nshard: [{B: d, stage: 0}]\n"))
                .message(),
            "p.yaml:2:9: shard stage: expected devices along D, which run the "
            "stages of a pipeline, as shard: [{D: pipe}], found none; divide D "
            "or say with 'at' which layers it is for");
  Plan plan = Parse(kPipe);
  plan.schedule = Schedule{ScheduleKind::kInterleaved, 1, ""};
  EXPECT_EQ(ScheduleOf(plan, true).status().message(),
            "--schedule: interleaved: expected at least 2 stages per device, "
            "found 1; 1f1b is that of 1");
}

}  // namespace
}  // namespace partita::plan
