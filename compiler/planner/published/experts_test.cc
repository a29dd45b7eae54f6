// Tests of layers with experts: sizes, memory and time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/planner/published/frameworks.h"
#include "compiler/planner/published/sweep.h"
#include "compiler/planner/transformer/evaluate.h"
#include "compiler/planner/transformer/layer_cost.h"

namespace partita::planner {
namespace {

using ::testing::HasSubstr;

// Mixtral 8x7B: 46.7 billion parameters, of which 12.9 are active per token
// (arXiv 2401.04088).
Architecture Mixtral() {
  Architecture a;
  a.kind = ModelKind::kLlama;
  a.layers = 32;
  a.hidden = 4096;
  a.heads = 32;
  a.kv_heads = 8;
  a.ffn = 14336;
  a.seq = 4096;
  a.vocab = 32000;
  a.tied = false;
  a.experts = 8;
  a.topk = 2;
  a.expert_ffn = 14336;
  return a;
}

Division Divide(int tp, int dp, int ep, int etp) {
  Division d;
  d.tp = tp;
  d.dp = dp;
  d.ep = ep;
  d.etp = etp;
  d.devices = tp * dp;
  d.batch = 64;
  d.sequence_parallel = tp > 1;
  return d;
}

// Software that hides no collectives.
const Software& Megatron() { return SoftwareOf("Megatron-LM"); }

PartCost LayerOf(const Architecture& a, const Division& d) {
  absl::StatusOr<Cluster> cluster = BuiltInCluster("8 nodes x h100-sxm");
  EXPECT_TRUE(cluster.ok()) << cluster.status();
  return LayerCost({a, d, *cluster, Megatron()});
}

double Collectives(const Architecture& a, const Division& d) {
  const PartCost cost = LayerOf(a, d);
  return cost.forward.tensor + cost.backward.tensor;
}

TEST(Experts, CountAsPublished) {
  Architecture a = Mixtral();
  EXPECT_NEAR(Parameters(a) / 1e9, 46.7, 0.05);
  // Six operations per parameter and token, without the embedding. Attention
  // counts as if not causal.
  const double attention = 12.0 * a.layers * a.hidden * a.seq;
  const double passed = (ModelFlops(a, 1) / a.seq - attention) / 6;
  EXPECT_NEAR((passed + double(a.vocab) * a.hidden) / 1e9, 12.9, 0.05);
  // Grok-1 has 314 billion parameters.
  a.layers = 64;
  a.hidden = 6144;
  a.heads = 48;
  a.ffn = a.expert_ffn = 32768;
  a.vocab = 131072;
  EXPECT_NEAR(Parameters(a) / 1e9, 314, 4);
}

TEST(Experts, OneIsTheMlpAndARouter) {
  Architecture dense = Mixtral(), one = dense;
  dense.experts = dense.topk = dense.expert_ffn = 0;
  one.experts = one.topk = 1;
  EXPECT_EQ(Parameters(one), Parameters(dense) + one.layers * one.hidden);
  for (const int tp : {1, 4}) {
    const Division d = Divide(tp, 2, 1, tp);
    const PartCost a = LayerOf(dense, d), b = LayerOf(one, d);
    EXPECT_NEAR(b.forward.products / a.forward.products, 1, 0.01);
    EXPECT_NEAR(b.weights / a.weights, 1, 0.01);
    // A gather and a reduction of the expert's tokens, which are all tokens.
    EXPECT_NEAR(b.forward.tensor, a.forward.tensor, 1e-9);
    const MemoryUse left = EvaluateMemory(dense, d, Megatron());
    const MemoryUse right = EvaluateMemory(one, d, Megatron());
    EXPECT_NEAR(right.optimizer / left.optimizer, 1, 1e-3);
    EXPECT_GT(right.activations, left.activations);
  }
}

// A rank with fewer experts holds fewer parameters, gradients and states.
// ZeRO-1 divides its states over the copies of its experts.
TEST(Experts, AreDividedOverTheirRanks) {
  const Architecture a = Mixtral();
  const double all = double(a.layers) * ExpertParameters(a);
  const auto held = [&](int tp, int dp, int ep, int etp, int zero) {
    Division d = Divide(tp, dp, ep, etp);
    d.zero = zero;
    const MemoryUse with = EvaluateMemory(a, d, Megatron());
    Architecture router = a;  // the part that every rank has
    router.expert_ffn = 0;
    router.kind = a.kind;
    const MemoryUse without = EvaluateMemory(router, d, Megatron());
    return (with.parameters + with.gradients + with.optimizer -
            without.parameters - without.gradients - without.optimizer) /
           all;
  };
  EXPECT_NEAR(held(1, 8, 1, 1, 0), 18, 1e-6);
  EXPECT_NEAR(held(1, 8, 8, 1, 0), 18. / 8, 1e-6);
  EXPECT_NEAR(held(2, 4, 4, 2, 0), 18. / 8, 1e-6);
  EXPECT_NEAR(held(2, 4, 8, 1, 0), 18. / 8, 1e-6);
  // 12 of the 18 bytes are the optimizer's.
  EXPECT_NEAR(held(1, 8, 4, 1, 1), (6 + 12. / 2) / 4, 1e-6);
}

// Each pass sends every token to and from each of its experts. Across nodes
// this takes longer.
TEST(Experts, TokensTravelToThem) {
  Architecture a = Mixtral();
  EXPECT_EQ(Collectives(a, Divide(1, 64, 1, 1)), 0);
  const double within = Collectives(a, Divide(1, 64, 8, 1));
  a.topk = 4;
  EXPECT_NEAR(Collectives(a, Divide(1, 64, 8, 1)) / within, 2, 0.1);
  a.experts = 64;
  EXPECT_GT(Collectives(a, Divide(1, 64, 64, 1)), 4 * within);
}

SweepRow RowOf(const std::string& columns, const std::string& cells) {
  absl::StatusOr<std::vector<CsvRow>> table =
      ReadCsv("layers,hidden,heads,seq_len,gbs,mbs,n_gpus,tp,ep" + columns +
                  "\n4,512,8,1024,64,1,8,2,4" + cells + "\n",
              "rows.csv");
  EXPECT_TRUE(table.ok()) << table.status();
  absl::StatusOr<std::vector<SweepRow>> rows =
      ReadSweep(*table, "rows.csv", std::nullopt);
  EXPECT_TRUE(rows.ok()) << rows.status();
  return (*rows)[0];
}

std::string Problem(const std::string& columns, const std::string& cells) {
  SweepRow row = RowOf(columns, cells);
  return std::string(Predict(row).status().message());
}

TEST(Experts, AreColumnsOfASweep) {
  SweepRow row =
      RowOf(",moe_experts,moe_topk,moe_ffn,shared_experts,etp,framework",
            ",16,3,256,2,1,Megatron-Core");
  EXPECT_EQ(row.architecture.experts, 16);
  EXPECT_EQ(row.architecture.topk, 3);
  EXPECT_EQ(row.architecture.expert_ffn, 256);
  EXPECT_EQ(row.architecture.shared_ffn, 512);
  EXPECT_EQ(row.division.ep, 4);
  EXPECT_EQ(row.division.etp, 1);
  EXPECT_EQ(row.division.expert_copies(), 2);
  EXPECT_TRUE(Predict(row).ok());
  // Experts are divided like the rest of the model unless the row says
  // otherwise.
  row = RowOf(",moe_experts", ",16");
  EXPECT_EQ(row.architecture.expert_ffn, 4 * 512);
  EXPECT_EQ(row.division.etp, 2);
  EXPECT_THAT(row.defaults, ::testing::Contains("moe_topk=2"));
}

TEST(Experts, SaysWhatDoesNotGoTogether) {
  EXPECT_EQ(Problem("", ""),
            "ep: expected 1 of a model without experts (moe_experts), found 4");
  EXPECT_EQ(Problem(",moe_experts", ",6"),
            "moe_experts of 6 does not divide by ep 4");
  EXPECT_EQ(Problem(",moe_experts,moe_topk", ",8,9"),
            "moe_topk: expected 1 to 8, found 9");
  EXPECT_EQ(Problem(",moe_experts,etp", ",8,4"),
            "tp x cp x dp of 8 does not divide by ep x etp 16");
  EXPECT_THAT(Problem(",moe_experts,model_family", ",8,t5"),
              HasSubstr("a t5 has none"));
}

}  // namespace
}  // namespace partita::planner
