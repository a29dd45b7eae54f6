#include "compiler/planner/search/write_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace partita::planner {
namespace {

using core::Precision;
using ::testing::HasSubstr;

Architecture Gpt() {
  Architecture a;
  a.layers = 8;
  a.hidden = 1024;
  a.heads = a.kv_heads = 16;
  a.ffn = 4096;
  a.seq = 1024;
  a.vocab = 50257;
  return a;
}

TEST(PlanOf, IsWhatAPersonWouldWrite) {
  Division d;
  d.tp = 4;
  d.pp = 2;
  d.dp = 3;
  d.cp = 2;
  d.devices = 48;
  d.batch = 36;
  d.microbatch = 2;
  d.sequence_parallel = true;
  d.zero = 1;
  d.vpp = 2;
  d.cut = {2, 2, 3, 1};
  d.recompute = Recomputation::kFull;
  PlanNames names;
  names.layer = "transformer.h.";
  const absl::StatusOr<plan::Plan> plan = PlanOf(Gpt(), d, names);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const std::string text = plan::WritePlan(*plan);
  EXPECT_EQ(text, R"(mesh: {pipe: 2, data: 3, context: 2, tensor: 4}
shard:
  - {B: data, D: pipe}
  - {L: context}
  - {M: tensor, N: tensor, V: tensor}
  - {L: tensor}
zero: 1
microbatches: 6
schedule: interleaved(2)
stages:
  - {to: "transformer.h.1"}
  - {to: "transformer.h.3"}
  - {to: "transformer.h.6"}
  - {to: "transformer.h.7"}
recompute: full
precision: bf16
)");
  const absl::StatusOr<plan::Plan> read = plan::ParsePlan(text, "plan.yaml");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(plan::DiffPlans(*plan, *read).empty());
}

TEST(PlanOf, SaysNoMoreThanItMust) {
  Division d;
  d.precision = Precision::kF32;
  d.recompute = Recomputation::kSelective;
  EXPECT_EQ(plan::WritePlan(*PlanOf(Gpt(), d, {})),
            "mesh: {data: 1}\nshard:\n  - {B: data}\n");
  d.devices = d.tp = 2;
  d.precision = Precision::kF8;
  EXPECT_EQ(PlanOf(Gpt(), d, {})->precision, Precision::kF8);
}

// Entries cover only the layers that have a dimension of that name. A division
// by images in all layers uses one axis.
TEST(PlanOfLayers, ScopesMappings) {
  StepGraph step;
  step.layers = {"stem", "stages.0.blocks.0", "stages.1.blocks.0", "head"};
  step.dims = {{"B", "H", "E"}, {"B", "H", "M"}, {"B", "M", "N"}, {"V"}};
  step.mappings = {
      {{"B"}, {}, true}, {{"H"}, {}}, {{"M", "N", "V"}, {}}, {{}, {}}};
  LayerTable table;
  table.data = 2;
  table.inner = 4;
  const auto text = [&](std::vector<int> mappings) {
    return plan::WritePlan(
        *PlanOfLayers(step, table, {0, std::move(mappings)}, Precision::kBF16));
  };
  EXPECT_EQ(text({1, 1, 2, 3}),
            "mesh: {data: 2, tensor: 4}\nshard:\n  - {B: data}\n"
            "  - {at: [\"stages.0.*\", \"stem\"], H: tensor}\n"
            "  - {at: \"stages.1.*\", M: tensor, N: tensor}\n"
            "precision: bf16\n");
  EXPECT_EQ(text({2, 2, 2, 2}),
            "mesh: {data: 2, tensor: 4}\nshard:\n  - {B: data}\n"
            "  - {M: tensor, N: tensor, V: tensor}\nprecision: bf16\n");
  EXPECT_EQ(text({0, 0, 0, 0}),
            "mesh: {data: 8}\nshard:\n  - {B: data}\nprecision: bf16\n");
  table.data = 1;
  EXPECT_EQ(text({1, 1, 2, 2}),
            "mesh: {tensor: 4}\nshard:\n"
            "  - {at: [\"stages.0.*\", \"stem\"], H: tensor}\n"
            "  - {at: [\"head\", \"stages.1.*\"], M: tensor, N: tensor, V: "
            "tensor}\nprecision: bf16\n");
}

TEST(SlurmScript, SaysForHowLongAndOnWhoseAccount) {
  Division d;
  d.devices = d.dp = 8;
  d.batch = 8;
  const plan::Plan plan = *PlanOf(Gpt(), d, {});
  const Cluster cluster = *BuiltInCluster("8x a100-80-sxm");
  const absl::StatusOr<std::string> script =
      SlurmScript(plan, cluster, "a", {"1-20:00:00", "abc@a100"});
  ASSERT_TRUE(script.ok()) << script.status();
  EXPECT_THAT(*script, HasSubstr("#SBATCH --time=1-20:00:00\n"
                                 "#SBATCH --account=abc@a100\n"));
  EXPECT_THAT(*SlurmScript(plan, cluster, "a"), Not(HasSubstr("--time")));
  EXPECT_THAT(
      std::string(
          SlurmScript(plan, cluster, "a", {"20h", ""}).status().message()),
      HasSubstr("--time: expected minutes, HH:MM:SS or DAYS-HH:MM:SS, found "
                "'20h'"));
  EXPECT_THAT(
      std::string(
          SlurmScript(plan, cluster, "a", {"", "a\nrm"}).status().message()),
      HasSubstr("--account: expected a name without spaces, found 'a\\x0arm'"));
}

TEST(SlurmScript, HasATaskForEachDevice) {
  Division d;
  d.tp = 8;
  d.dp = 4;
  d.batch = 4;
  d.devices = 32;
  const plan::Plan plan = *PlanOf(Gpt(), d, {});
  const Cluster cluster = *BuiltInCluster("64x a100-80-sxm");
  const absl::StatusOr<std::string> script =
      SlurmScript(plan, cluster, "it's/gpt 2.partita");
  ASSERT_TRUE(script.ok()) << script.status();
  EXPECT_THAT(*script, HasSubstr("#SBATCH --job-name=gpt-2-partita\n"));
  EXPECT_THAT(*script, HasSubstr("#SBATCH --nodes=4\n"));
  EXPECT_THAT(*script, HasSubstr("#SBATCH --ntasks-per-node=8\n"));
  EXPECT_THAT(*script, HasSubstr("#SBATCH --gpus-per-node=8\n"));
  EXPECT_THAT(*script, HasSubstr("srun --ntasks=32 --distribution=block "
                                 "partita-run train "
                                 "'it'\\''s/gpt 2.partita' \"$@\"\n"));
  EXPECT_THAT(
      std::string(SlurmScript(plan, *BuiltInCluster("16x a100-80-sxm"), "a")
                      .status()
                      .message()),
      HasSubstr("expected a plan for at most the 16 devices of "));
  d.tp = 3;
  d.devices = 12;
  EXPECT_THAT(
      std::string(
          SlurmScript(*PlanOf(Gpt(), d, {}), cluster, "a").status().message()),
      HasSubstr("whole nodes of 8 devices, found one for 12"));
}

}  // namespace
}  // namespace partita::planner
