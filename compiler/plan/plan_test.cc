// Tests of valid plans: reading, and writing back.
#include "compiler/plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

namespace partita::plan {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Plan Parsed(const std::string& text) {
  const absl::StatusOr<Plan> plan = ParsePlan(text, "plan.yaml");
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return plan.ok() ? *plan : Plan();
}

std::vector<std::string> Entries(const Plan& plan) {
  std::vector<std::string> entries;
  for (const Entry& entry : plan.shard)
    entries.push_back(ToString(plan.mesh, entry));
  return entries;
}

// A plan with every field of PLAN.md.
constexpr char kWhole[] = R"(# A comment.
mesh: {data: 8, pipe: 4, tensor: 8}
shard:
  - {B: data, D: pipe}
  - {M: tensor, N: tensor, V: tensor}
  - {at: "stages.{0,1}.*", H: [tensor:(1)2, tensor:(2)4]}
  - at: [a.*, b.*]
    X: tensor
    stage: [1, 2]
zero: 1
gather: {prefetch: 2, hold: step}
microbatches: 16
schedule: interleaved(2)
stages: [{to: "h.7"}, {to: "h.15", mesh: {data: 4, tensor: 16}}]
recompute: [selective, {at: "h.*", policy: full}]
precision: bf16
offload: optimizer
attention: ulysses
experts: {exchange: rows, rows: 1.25}
memory: 78 GB
overrides: [{tensor: "h.*.up.weight", sharding: "[{}, {tensor}]"}]
budgets: {all_gather: 0 MB, total: 1.5 GB}
names: ["h.*.up.weight:1=M", "*.q:2=X"]
)";

TEST(ParsePlan, ReadsEveryField) {
  const Plan plan = Parsed(kWhole);
  EXPECT_EQ(ToString(plan.mesh), "{data: 8, pipe: 4, tensor: 8}");
  EXPECT_THAT(
      Entries(plan),
      ElementsAre("{B: data, D: pipe}", "{M: tensor, N: tensor, V: tensor}",
                  "{at: \"stages.{0,1}.*\", H: [tensor:(1)2, tensor:(2)4]}",
                  "{stage: [1, 2], at: [\"a.*\", \"b.*\"], X: tensor}"));
  EXPECT_THAT(plan.shard[3].stages, ElementsAre(1, 2));
  EXPECT_FALSE(HoldsIn(plan.shard[3], 0));
  EXPECT_TRUE(HoldsIn(plan.shard[3], 1));
  EXPECT_TRUE(HoldsIn(plan.shard[2], 0));
  EXPECT_EQ(plan.zero, 1);
  ASSERT_TRUE(plan.gather.has_value());
  EXPECT_EQ(plan.gather->prefetch, 2);
  EXPECT_EQ(plan.gather->hold, Hold::kStep);
  EXPECT_EQ(plan.microbatches, 16);
  ASSERT_TRUE(plan.schedule.has_value());
  EXPECT_EQ(plan.schedule->kind, ScheduleKind::kInterleaved);
  EXPECT_EQ(plan.schedule->chunks, 2);
  ASSERT_EQ(plan.stages.size(), 2u);
  EXPECT_EQ(plan.stages[0].to, "h.7");
  ASSERT_TRUE(plan.stages[1].mesh.has_value());
  EXPECT_EQ(plan.stages[1].mesh->Size(), 64);
  ASSERT_EQ(plan.recompute.size(), 2u);
  EXPECT_EQ(plan.recompute[1].policy, RecomputePolicy::kFull);
  EXPECT_THAT(plan.recompute[1].at, ElementsAre("h.*"));
  EXPECT_EQ(plan.precision, Precision::kBF16);
  EXPECT_EQ(plan.offload, Offload::kOptimizer);
  EXPECT_EQ(plan.attention, LongAttention::kUlysses);
  EXPECT_EQ(plan.experts->exchange, ExpertExchange::kRows);
  EXPECT_EQ(plan.experts->rows, 1.25);
  EXPECT_EQ(plan.memory, 78000000000);
  ASSERT_EQ(plan.overrides.size(), 1u);
  EXPECT_EQ(core::ToString(plan.mesh, plan.overrides[0].sharding),
            "[{}, {tensor}]");
  ASSERT_EQ(plan.budgets.size(), 2u);
  EXPECT_EQ(plan.budgets[0].kind, "all_gather");
  EXPECT_EQ(plan.budgets[0].bytes, 0);
  EXPECT_EQ(plan.budgets[1].bytes, 1500000000);
  ASSERT_EQ(plan.names.size(), 2u);
  EXPECT_EQ(plan.names[1].tensor, "*.q");
  EXPECT_EQ(plan.names[1].dim, 2);
  EXPECT_EQ(plan.names[1].dimension, "X");
}

TEST(ParsePlan, KnowsWhereThingsStand) {
  const Plan plan = Parsed(kWhole);
  EXPECT_EQ(Where(plan, plan.shard[1].where), "plan.yaml:5:5");
  EXPECT_EQ(Where(plan, plan.shard[1].dimensions[2].where), "plan.yaml:5:28");
  EXPECT_EQ(Where(plan, plan.fields.at("zero")), "plan.yaml:10:7");
  EXPECT_EQ(Where(plan, plan.budgets[1].where), "plan.yaml:22:29");
  EXPECT_EQ(Where(plan, {}), "plan.yaml");
}

TEST(ParsePlan, DefaultsAreOneDeviceAndNothingDone) {
  const Plan plan = Parsed("mesh: {}");
  EXPECT_EQ(plan.mesh.Size(), 1);
  EXPECT_THAT(plan.shard, IsEmpty());
  EXPECT_EQ(plan.zero, 0);
  EXPECT_EQ(plan.microbatches, 1);
  EXPECT_EQ(WritePlan(plan), "mesh: {}\n");
}

TEST(ParsePlan, DeviceOrder) {
  const Plan plan =
      Parsed("mesh: {axes: {x: 2, y: 2}, device_ids: [3, 2, 1, 0]}");
  EXPECT_THAT(plan.mesh.device_ids, ElementsAre(3, 2, 1, 0));
  EXPECT_EQ(ToString(plan.mesh),
            "{axes: {x: 2, y: 2}, device_ids: [3, 2, 1, 0]}");
  EXPECT_EQ(Parsed("mesh: {axes: 2}").mesh.axes[0].name, "axes");
}

TEST(ParsePlan, AnAxisMayServeDimensionsThatNeverMeet) {
  for (const char* entry :
       {"{M: a, N: a, V: a}", "{H: a, N: a}", "{B: a, X: a}", "{H: a, L: a}"})
    Parsed("{mesh: {a: 2}, shard: [" + std::string(entry) + "]}");
  // In separate entries any dimensions may share an axis.
  Parsed("{mesh: {a: 2}, shard: [{M: a}, {L: a}, {B: a}, {E: a}]}");
}

TEST(ParsePlan, Schedules) {
  for (const char* word : {"gpipe", "1f1b", "interleaved(4)", "zb-h1", "zb-v",
                           "async-2bw", "async", "\"tables/my.csv\""}) {
    const std::string text = "mesh: {}\nschedule: " + std::string(word) + "\n";
    EXPECT_EQ(WritePlan(Parsed(text)), text);
  }
}

TEST(WritePlan, IsCanonical) {
  EXPECT_EQ(WritePlan(Parsed(kWhole)),
            R"(mesh: {data: 8, pipe: 4, tensor: 8}
shard:
  - {B: data, D: pipe}
  - {M: tensor, N: tensor, V: tensor}
  - {at: "stages.{0,1}.*", H: [tensor:(1)2, tensor:(2)4]}
  - {stage: [1, 2], at: ["a.*", "b.*"], X: tensor}
zero: 1
gather: {prefetch: 2, hold: step}
microbatches: 16
schedule: interleaved(2)
stages:
  - {to: "h.7"}
  - {to: "h.15", mesh: {data: 4, tensor: 16}}
recompute: [selective, {at: "h.*", policy: full}]
precision: bf16
offload: optimizer
attention: ulysses
experts: {exchange: rows, rows: 1.25}
memory: 78 GB
overrides:
  - {tensor: "h.*.up.weight", sharding: "[{}, {tensor}]"}
budgets: {all_gather: 0 B, total: 1500 MB}
names:
  - "h.*.up.weight:1=M"
  - "*.q:2=X"
)");
}

TEST(WritePlan, ParsesToTheSame) {
  const char* const texts[] = {
      kWhole,
      "{mesh: {null_axis: 2, 'null': 3, device: 1}, shard: [{B: ['null', "
      "null_axis]}]}",
      "mesh: {a: 2, b: 2}\noverrides:\n- {tensor: \"q\\\\\\\\x\\\"\", "
      "sharding: "
      "'[{a, ?}|3] replicated={b}'}\n"};
  for (const char* text : texts) {
    const Plan plan = Parsed(text);
    EXPECT_EQ(WritePlan(Parsed(WritePlan(plan))), WritePlan(plan));
    EXPECT_THAT(DiffPlans(plan, Parsed(WritePlan(plan))), IsEmpty());
  }
}

TEST(DiffPlans, SaysWhatDiffers) {
  const Plan a = Parsed("{mesh: {a: 2}, shard: [{B: a}], zero: 1}");
  const Plan b = Parsed(
      "{mesh: {a: 4}, shard: [{B: a}, {M: a}], memory: 1 GB, microbatches: 4}");
  EXPECT_THAT(
      DiffPlans(a, b),
      ElementsAre("mesh: {a: 2} -> {a: 4}", "shard[1]: - -> {M: a}",
                  "zero: 1 -> -", "microbatches: - -> 4", "memory: - -> 1 GB"));
  EXPECT_THAT(DiffPlans(b, b), IsEmpty());
}

TEST(ReadPlan, ReadsAFile) {
  const std::string path = testing::TempDir() + "/some_plan.yaml";
  std::ofstream(path) << "mesh: {data: 2}\nshard: [{B: data}]\n";
  const absl::StatusOr<Plan> plan = ReadPlan(path);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_EQ(plan->origin, path);
  EXPECT_THAT(Entries(*plan), ElementsAre("{B: data}"));
  std::remove(path.c_str());
}

TEST(Options, AreAPlanWithoutAFile) {
  const absl::StatusOr<core::Mesh> mesh = ParseMeshOption("data=2, tensor=4");
  ASSERT_TRUE(mesh.ok()) << mesh.status().message();
  EXPECT_EQ(ToString(*mesh), "{data: 2, tensor: 4}");
  const absl::StatusOr<std::vector<Entry>> entries = ParseShardOption(
      "B=data,M=tensor;L=tensor:(1)2+data;H=tensor@s.{0,1}.*", *mesh);
  ASSERT_TRUE(entries.ok()) << entries.status().message();
  std::vector<std::string> texts;
  for (const Entry& entry : *entries) texts.push_back(ToString(*mesh, entry));
  EXPECT_THAT(texts,
              ElementsAre("{B: data, M: tensor}", "{L: [tensor:(1)2, data]}",
                          "{at: \"s.{0,1}.*\", H: tensor}"));
}

TEST(Options, Recompute) {
  const auto rules = ParseRecomputeOption("selective; full@h.{0,1}.*;");
  ASSERT_TRUE(rules.ok()) << rules.status().message();
  ASSERT_EQ(rules->size(), 2u);
  EXPECT_EQ((*rules)[0].policy, RecomputePolicy::kSelective);
  EXPECT_THAT((*rules)[0].at, IsEmpty());
  EXPECT_EQ((*rules)[1].policy, RecomputePolicy::kFull);
  EXPECT_THAT((*rules)[1].at, ElementsAre("h.{0,1}.*"));
}

TEST(Options, Names) {
  const absl::StatusOr<Name> name = ParseName("h.*.mlp.up.weight:1=M");
  ASSERT_TRUE(name.ok()) << name.status().message();
  EXPECT_EQ(name->tensor, "h.*.mlp.up.weight");
  EXPECT_EQ(name->dim, 1);
  EXPECT_EQ(name->dimension, "M");
  EXPECT_EQ(ParseName("a:b=c:0=L")->tensor, "a:b=c");
  for (const char* text : {"a:0=L'", "a:0=none", "a:0=gates", "a:0=D"})
    EXPECT_FALSE(ParseName(text).ok()) << text;
}

TEST(Plan, OffloadToFiles) {
  const std::string text =
      "mesh: {d: 2}\n"
      "offload: {optimizer: nvme, path: \"/data/states\", buffers: 64 MB}\n";
  const absl::StatusOr<Plan> plan = ParsePlan(text, "p.yaml");
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->offload, Offload::kOptimizer);
  ASSERT_TRUE(plan->state_files.has_value());
  EXPECT_EQ(plan->state_files->folder, "/data/states");
  EXPECT_EQ(plan->state_files->buffers, 64000000);
  EXPECT_EQ(WritePlan(*plan), text);
  const absl::StatusOr<Plan> without = ParsePlan(
      "mesh: {d: 2}\noffload: {optimizer: nvme, path: s}\n", "p.yaml");
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_EQ(without->state_files->buffers, 0);
  EXPECT_EQ(DiffPlans(*without, *plan).size(), 1u);
  const absl::StatusOr<Plan> host =
      ParsePlan("mesh: {d: 2}\noffload: {optimizer: host}\n", "p.yaml");
  ASSERT_TRUE(host.ok()) << host.status();
  EXPECT_EQ(WritePlan(*host), "mesh: {d: 2}\noffload: optimizer\n");
}

TEST(ParseBytes, Units) {
  EXPECT_EQ(*ParseBytes("78 GB"), 78000000000);
  EXPECT_EQ(*ParseBytes("78GB"), 78000000000);
  EXPECT_EQ(*ParseBytes("0 MB"), 0);
  EXPECT_EQ(*ParseBytes("1.5 GiB"), 1610612736);
  EXPECT_EQ(*ParseBytes("3 B"), 3);
  EXPECT_EQ(*ParseBytes("2 kB"), 2000);
}

TEST(ParseShardingText, IsWhatCoreWrites) {
  core::Mesh mesh;
  mesh.axes = {{"a", 2}, {"b", 4}, {"c", 2}, {"d", 2}};
  for (const char* text :
       {"[]", "[{}]", "[{a, b:(1)2}, {?}, {c, ?}|28]", "[{?}, {b:(2)2, ?}]",
        "[{a}] replicated={b, d} unreduced={c}", "[] unreduced={a}"}) {
    const absl::StatusOr<core::Sharding> sharding =
        ParseShardingText(text, mesh);
    ASSERT_TRUE(sharding.ok()) << sharding.status().message();
    EXPECT_EQ(core::ToString(mesh, *sharding), text);
  }
  // Axis names in double quotes, as Shardy prints them.
  EXPECT_EQ(
      core::ToString(mesh, *ParseShardingText("[{\"a\",\"b\":(1)2},{}]", mesh)),
      "[{a, b:(1)2}, {}]");
}

TEST(CheckDeviceCount, ComparesTheMesh) {
  const Plan plan = Parsed("mesh: {data: 2, tensor: 2}");
  EXPECT_TRUE(CheckDeviceCount(plan, 4).ok());
  EXPECT_EQ(CheckDeviceCount(plan, 8).message(),
            "--devices: expected the 4 devices of the mesh {data: 2, tensor: "
            "2} (plan.yaml:1:7), found 8; change one of the two");
  Plan option;
  option.mesh = *ParseMeshOption("data=2");
  EXPECT_EQ(CheckDeviceCount(option, 3).message(),
            "--devices: expected the 2 devices of the mesh {data: 2} (--mesh), "
            "found 3; change one of the two");
}

TEST(ParseShardOption, ReadsStages) {
  const core::Mesh mesh = *ParseMeshOption("p=2,t=2");
  const auto entries =
      ParseShardOption("D=p;B=t@stage(0);M=t,N=t@stage(1 + 2)", mesh);
  ASSERT_TRUE(entries.ok()) << entries.status();
  EXPECT_TRUE((*entries)[0].stages.empty());
  EXPECT_THAT((*entries)[1].stages, ElementsAre(0));
  EXPECT_THAT((*entries)[2].stages, ElementsAre(1, 2));
  EXPECT_THAT((*entries)[2].at, IsEmpty());
}

TEST(ParseShardOption, MayEndInASemicolon) {
  const core::Mesh mesh = *ParseMeshOption("t=2");
  const auto entries = ParseShardOption("B=t; ", mesh);
  ASSERT_TRUE(entries.ok()) << entries.status();
  EXPECT_EQ(entries->size(), 1u);
  EXPECT_FALSE(ParseShardOption("B=t;;M=t", mesh).ok());
  EXPECT_FALSE(ParseShardOption(";", mesh).ok());
}

}  // namespace
}  // namespace partita::plan
