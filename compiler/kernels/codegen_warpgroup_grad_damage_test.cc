// Damages the gradient of attention by warpgroups. The emulation must find it.
#include <gtest/gtest.h>

#include "compiler/kernels/attention_grad_cases.h"
#include "compiler/kernels/damaged_kernels.h"
#include "compiler/kernels/emit_team.h"
#include "compiler/kernels/emit_tile_ring.h"
#include "compiler/kernels/emit_turns.h"
#include "compiler/kernels/emit_warpgroup.h"

namespace partita::kernels {
namespace {

CodegenOptions emulated() { return ptxCodegenOptions({.chip = "sm_90a"}); }

// Two blocks of keys, two heads of queries, three tiles of queries in a ring of
// two.
const Case kWhole = {"", 1,  2,      1,    150,   100,   64,  64,
                     "", "", "bf16", 3e-2, "012", false, true};

const std::string kWait = std::string(kGroupWait) + "_64";

class WarpgroupGradDamage : public testing::TestWithParam<Damage> {};

TEST_P(WarpgroupGradDamage, IsFound) {
  expectFound(
      textOf(kWhole), emulated(), GetParam(),
      [](CompiledKernel& kernel) { return differenceOf(kernel, kWhole); });
}

// Fences are for keys and values, for the ring (which covers those), and for
// gradients of scores. Meetings are: before an item; for its ticket; for keys
// and values; for the ring; for gradients of scores; before the turn is passed;
// to close the ring; and two for each of three results. Waits are for products
// of scores, with the result's gradient, with both sums, and for the sums of
// queries.
const Damage kDamages[] = {
    {"no_fence_for_ring", kFenceTiles, 1, 0,
     "a box for a barrier that was made without a fence", 3},
    {"no_fence_for_scores", kFenceTiles, 2, 0,
     "a product of memory that thread 0 has written without a fence", 3},
    {"one_thread_fences_scores", kFenceTiles, 2, kAlone,
     "a product of memory that thread 1 has written without a fence", 3},
    {"no_meeting_for_ring", kBlockSync, 3, 0,
     "uses a barrier (where there is none|that another thread has made)", 14},
    {"no_meeting_for_scores", kBlockSync, 4, 0,
     "a product of memory that thread 0 has written, and threads have not met "
     "since",
     14},
    {"no_meeting_before_turn", kBlockSync, 5, 0,
     "thread 0 (passes a turn before it has met|awaits a turn after) thread 1",
     14},
    {"turn_not_awaited", kAwaitTurn, -1, 0,
     "thread 0 passes turn 1 without the turn before it"},
    {"turn_not_passed", kPassTurn, -1, 0, "a block waits forever for turn 1"},
    {"no_wait_for_tiles", kBarrierWait, 1, 0, ""},
    {"no_release", kBarrierArrive, -1, 0, "waits forever"},
    {"barriers_left", kBarrierEnd, -1, 0,
     "a barrier is made where there is one"},
    {"no_commit", kGroupCommit, -1, 0, ""},
    {"scores_not_awaited", kWait, 0, 1, "", 5},
    {"given_not_awaited", kWait, 1, 1, "", 5},
    {"sums_not_awaited", kWait, 4, 1, "", 5},
};
INSTANTIATE_TEST_SUITE_P(Codegen, WarpgroupGradDamage,
                         testing::ValuesIn(kDamages),
                         [](const auto& info) { return info.param.name; });

TEST(WarpgroupGradDamageTest, CodeWithoutDamageIsRight) {
  for (const std::string& text : {textOf(kWhole), textOfSums(kWhole)}) {
    std::unique_ptr<CompiledKernel> kernel =
        CompiledKernel::fromText(text, emulated());
    ASSERT_NE(kernel, nullptr);
    EXPECT_EQ(differenceOf(*kernel, kWhole), "");
  }
}

// If blocks take no turns, a stage is filled again without a meeting.
TEST(WarpgroupGradDamageTest, ReadersAreAwaitedWithoutTurns) {
  Case test = kWhole;
  test.results = "12";
  expectFound(
      textOf(test), emulated(),
      {"", kBarrierWait, 0, 0,
       "a box over memory that warp [0-3] may still read"},
      [&](CompiledKernel& kernel) { return differenceOf(kernel, test); });
}

class WarpgroupGradOfSumsDamage : public testing::TestWithParam<Damage> {};

TEST_P(WarpgroupGradOfSumsDamage, IsFound) {
  expectFound(
      textOfSums(kWhole), emulated(), GetParam(),
      [](CompiledKernel& kernel) { return differenceOf(kernel, kWhole); });
}

// Waits for copies and fences are for keys and values, for a tile of queries
// (which cover those), and behind the last one; a fence before that is for
// gradients of scores.
const Damage kSumDamages[] = {
    {"no_wait_for_tiles", kWaitForCopies, 1, 0, "", 3},
    {"no_fence_for_tiles", kFenceTiles, 1, 0,
     "a product of memory that thread [0-9]+ has written without a fence", 4},
    {"no_fence_for_scores", kFenceTiles, 2, 0,
     "a product of memory that thread [0-9]+ has written without a fence", 4},
};
INSTANTIATE_TEST_SUITE_P(Codegen, WarpgroupGradOfSumsDamage,
                         testing::ValuesIn(kSumDamages),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace partita::kernels
