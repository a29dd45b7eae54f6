// Bounds on memory are none that a division goes below, and near enough to it
// to be of use.
#include "compiler/planner/least_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "compiler/planner/evaluate.h"

namespace partita::planner {
namespace {

Architecture RandomModel(std::mt19937& random) {
  const auto one_of = [&](std::vector<int64_t> values) {
    return values[random() % values.size()];
  };
  Architecture a;
  a.kind = random() % 2 ? ModelKind::kGpt : ModelKind::kLlama;
  a.tied = random() % 2;
  a.layers = one_of({4, 8, 16, 24});
  a.hidden = one_of({256, 1024, 4096});
  a.heads = a.kv_heads = 16;
  a.ffn = 4 * a.hidden;
  a.seq = one_of({128, 1024, 4096});
  a.vocab = one_of({1000, 51200});
  return a;
}

Division RandomDivision(const Architecture& a, std::mt19937& random) {
  const auto one_of = [&](std::vector<int> values) {
    return values[random() % values.size()];
  };
  Division d;
  d.tp = one_of({1, 2, 8});
  d.pp = one_of({1, 1, 2, 4});
  d.dp = one_of({1, 2, 16});
  d.cp = one_of({1, 1, 2});
  d.devices = d.tp * d.pp * d.dp * d.cp;
  d.sequence_parallel = d.tp > 1 && random() % 2;
  d.recompute = random() % 2 ? Recomputation::kNone : Recomputation::kFull;
  d.zero = d.dp > 1 ? one_of({0, 1, 2, 3}) : 0;
  d.offload = random() % 4 == 0;
  d.microbatch = one_of({1, 2});
  d.batch = d.microbatch * d.dp * one_of({1, 2, 3, 4, 6, 16});
  d.precision = random() % 4 ? Precision::kBf16 : Precision::kF32;
  if (d.pp == 1) return d;
  switch (random() % 5) {
    case 0:
      d.schedule = PipelineSchedule::kGpipe;
      break;
    case 1:
      d.schedule = PipelineSchedule::kZbH1;
      break;
    case 2:
      d.schedule = PipelineSchedule::kZbV;
      d.vpp = 2;
      break;
    case 3:
      d.vpp = 2;
      break;
    default:
      break;
  }
  if (d.stages() > a.layers || random() % 2) return d;
  d.cut.assign(d.stages(), 1);
  for (int64_t i = d.stages(); i < a.layers; ++i)
    ++d.cut[random() % d.stages()];
  return d;
}

TEST(LeastMemory, IsNoMoreThanMemory) {
  const Software& software = SoftwareOf("partita as planned");
  std::mt19937 random(17);
  std::vector<double> shares;
  for (int i = 0; i < 60; ++i) {
    const Architecture a = RandomModel(random);
    LeastMemory least(a, software);
    for (int k = 0; k < 20; ++k) {
      const Division d = RandomDivision(a, random);
      if (!CheckDivision(a, d).ok()) continue;
      const double bytes = EvaluateMemory(a, d, software).total();
      const double bound = least.Of(d);
      EXPECT_LE(bound, bytes * (1 + 1e-9))
          << ToString(d.schedule) << " of " << d.pp << " x " << d.vpp
          << ", zero " << d.zero << ", dp " << d.dp << ", tp " << d.tp << ", "
          << d.microbatches() << " microbatches";
      shares.push_back(bound / bytes);
    }
  }
  ASSERT_GE(shares.size(), 500u);
  std::sort(shares.begin(), shares.end());
  EXPECT_GE(shares[shares.size() / 2], 0.85);
  EXPECT_GE(shares[shares.size() / 20], 0.35);
}

// Of others' software there is one formula.
TEST(LeastMemory, IsTheFormulaOfOthers) {
  const Software& software = SoftwareOf("Megatron-LM");
  std::mt19937 random(5);
  for (int i = 0; i < 100; ++i) {
    const Architecture a = RandomModel(random);
    const Division d = RandomDivision(a, random);
    if (!CheckDivision(a, d).ok()) continue;
    LeastMemory least(a, software);
    EXPECT_DOUBLE_EQ(least.Of(d), EvaluateMemory(a, d, software).total());
  }
}

// What is kept on every rank that may be the fullest one is looked at: no rank
// has more than what is said of all.
TEST(Memory, IsThatOfTheFullestRank) {
  std::mt19937 random(3);
  for (const char* framework : {"", "partita as planned", "Megatron-LM"}) {
    const Software& software = SoftwareOf(framework);
    for (int i = 0; i < 60; ++i) {
      const Architecture a = RandomModel(random);
      const Division d = RandomDivision(a, random);
      if (!CheckDivision(a, d).ok()) continue;
      const double all = EvaluateMemory(a, d, software).total();
      double most = 0;
      for (int r = 0; r < d.pp; ++r)
        most = std::max(most, EvaluateRankMemory(a, d, software, r).total());
      EXPECT_NEAR(all, most, 1e-9 * most)
          << framework << ": " << ToString(d.schedule) << " of " << d.pp
          << " x " << d.vpp << ", " << d.microbatches() << " microbatches";
    }
  }
}

}  // namespace
}  // namespace partita::planner
