// Known orders of known schedules, and the common guarantees of all of them,
// for many numbers of ranks and microbatches.
#include "compiler/core/schedule_generators.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/core/check_schedule.h"
#include "compiler/core/schedule_csv.h"
#include "compiler/core/transfers.h"

namespace partita::core {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Le;

void ExpectSound(const Schedule& schedule) {
  const std::string text = WriteScheduleCsv(schedule);
  const absl::Status checked =
      CheckSchedule(schedule, {PeakInFlight(schedule)});
  EXPECT_TRUE(checked.ok()) << checked << "\n" << text;
  const absl::Status sent = CheckTransfers(schedule, PlaceTransfers(schedule));
  EXPECT_TRUE(sent.ok()) << sent << "\n" << text;
}

// Gradients of each kind, per stage, are in the order of the microbatches.
void ExpectGradientsInOrder(const Schedule& schedule) {
  std::vector<int> next(schedule.stages);
  for (const std::vector<Cell>& cells : schedule.cells)
    for (const Cell& cell : cells)
      if (cell.work == Work::kBackward || cell.work == Work::kWeightGrad)
        EXPECT_EQ(cell.microbatch, next[cell.stage]++)
            << WriteScheduleCsv(schedule);
}

TEST(ScheduleGeneratorsTest, AllAreSoundForAnyNumbers) {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    for (int microbatches = 1; microbatches <= 16; ++microbatches) {
      std::vector<Schedule> schedules = {
          GPipe(ranks, microbatches),
          OneForwardOneBackward(ranks, microbatches),
          Interleaved(ranks, 2, microbatches),
          Interleaved(ranks, 3, microbatches),
          ZeroBubbleH1(ranks, microbatches),
          ZeroBubbleV(ranks, microbatches),
          Async(ranks, microbatches)};
      if (microbatches >= ranks - 1)
        schedules.push_back(*Async2bw(ranks, microbatches));
      for (const Schedule& schedule : schedules) {
        EXPECT_EQ(schedule.ranks(), ranks);
        EXPECT_EQ(schedule.microbatches, microbatches);
        ExpectSound(schedule);
        ExpectGradientsInOrder(schedule);
      }
    }
  }
}

TEST(ScheduleGeneratorsTest, ForwardsAloneAreSoundAndKeepNothing) {
  for (int ranks = 1; ranks <= 4; ++ranks) {
    for (int microbatches : {1, 2, 5}) {
      for (const Schedule& whole :
           {GPipe(ranks, microbatches), Interleaved(ranks, 2, microbatches),
            ZeroBubbleH1(ranks, microbatches),
            ZeroBubbleV(ranks, microbatches)}) {
        const Schedule schedule = ForwardOnly(whole);
        ExpectSound(schedule);
        EXPECT_THAT(PeakInFlight(schedule), Each(0));
        EXPECT_EQ(ReadScheduleCsv(WriteScheduleCsv(schedule), "s")->trains,
                  false);
      }
    }
  }
  EXPECT_EQ(WriteScheduleCsv(ForwardOnly(ZeroBubbleV(2, 1))),
            "F0.0,F3.0\nF1.0,F2.0\n");
}

TEST(ScheduleGeneratorsTest, GPipe) {
  EXPECT_EQ(WriteScheduleCsv(GPipe(2, 3)),
            "F0.0,F0.1,F0.2,B0.0,B0.1,B0.2\n"
            "F1.0,F1.1,F1.2,B1.0,B1.1,B1.2\n");
  EXPECT_THAT(PeakInFlight(GPipe(4, 9)), ElementsAre(9, 9, 9, 9));
}

TEST(ScheduleGeneratorsTest, OneForwardOneBackward) {
  EXPECT_EQ(WriteScheduleCsv(OneForwardOneBackward(3, 4)),
            "F0.0,F0.1,F0.2,B0.0,F0.3,B0.1,B0.2,B0.3\n"
            "F1.0,F1.1,B1.0,F1.2,B1.1,F1.3,B1.2,B1.3\n"
            "F2.0,B2.0,F2.1,B2.1,F2.2,B2.2,F2.3,B2.3\n");
  // Case E1.
  EXPECT_THAT(PeakInFlight(OneForwardOneBackward(4, 9)),
              ElementsAre(4, 3, 2, 1));
  EXPECT_THAT(PeakInFlight(OneForwardOneBackward(4, 2)),
              ElementsAre(2, 2, 2, 1));
}

// Counts forwards before the first forward that a backward follows directly.
int WarmUp(const std::vector<Cell>& cells) {
  int forwards = 0;
  while (forwards < static_cast<int>(cells.size()) &&
         cells[forwards].work == Work::kForward)
    ++forwards;
  return forwards;
}

TEST(ScheduleGeneratorsTest, WarmUpAsInMegatron) {
  // Case E2: r's warm-up is S-r-1, interleaved 2(S-r-1) + (v-1)g, capped at
  // m*v; the first forward of the steady phase follows.
  for (int ranks : {2, 4, 8}) {
    for (int groups = 1; groups <= 3; ++groups) {
      const int m = groups * ranks;
      for (int r = 0; r < ranks; ++r) {
        EXPECT_EQ(WarmUp(OneForwardOneBackward(ranks, m).cells[r]),
                  std::min(ranks - r - 1, m - 1) + 1);
        for (int v : {2, 3}) {
          const int ahead = 2 * (ranks - r - 1) + (v - 1) * ranks;
          EXPECT_EQ(WarmUp(Interleaved(ranks, v, m).cells[r]),
                    std::min(ahead + 1, m * v));
        }
      }
    }
  }
}

TEST(ScheduleGeneratorsTest, InterleavedOrderAsInMegatron) {
  // Case E3: m = 8, v = 2, g = 4, +chunk forward, -chunk backward.
  const Schedule schedule = Interleaved(4, 2, 8);
  for (int r = 0; r < 4; ++r) {
    std::string forwards, backwards;
    std::vector<int> open(2);
    for (const Cell& cell : schedule.cells[r]) {
      const int chunk = cell.stage / 4;
      EXPECT_EQ(cell.stage % 4, r);
      const std::string text =
          std::to_string(cell.microbatch) + "/" + std::to_string(chunk) + " ";
      (cell.work == Work::kForward ? forwards : backwards) += text;
      open[chunk] += cell.work == Work::kForward ? 1 : -1;
      EXPECT_GE(open[chunk], 0) << "a backward without forward";
    }
    EXPECT_EQ(forwards,
              "0/0 1/0 2/0 3/0 0/1 1/1 2/1 3/1 4/0 5/0 6/0 7/0 4/1 5/1 6/1 "
              "7/1 ");
    EXPECT_EQ(backwards,
              "0/1 1/1 2/1 3/1 0/0 1/0 2/0 3/0 4/1 5/1 6/1 7/1 4/0 5/0 6/0 "
              "7/0 ");
    EXPECT_THAT(open, ElementsAre(0, 0));
    EXPECT_EQ(schedule.cells[r].size(), 2u * 2 * 8);
  }
}

TEST(ScheduleGeneratorsTest, ZeroBubbleH1) {
  // Case E5: rank 0's backward is whole, rank 1's is split.
  EXPECT_EQ(WriteScheduleCsv(ZeroBubbleH1(2, 3)),
            "F0.0,F0.1,B0.0,F0.2,B0.1,B0.2\n"
            "F1.0,I1.0,F1.1,I1.1,W1.0,F1.2,I1.2,W1.1,W1.2\n");
  // No more in flight than on the first stage of 1F1B.
  for (int ranks = 1; ranks <= 8; ++ranks)
    for (int m : {1, 4, 16})
      EXPECT_THAT(PeakInFlight(ZeroBubbleH1(ranks, m)), Each(Le(ranks)));
}

TEST(ScheduleGeneratorsTest, ZeroBubbleV) {
  const Schedule schedule = ZeroBubbleV(2, 4);
  EXPECT_THAT(schedule.rank_of_stage, ElementsAre(0, 1, 1, 0));
  EXPECT_EQ(WriteScheduleCsv(schedule),
            "F0.0,F0.1,F0.2,F3.0,I3.0,W3.0,F3.1,I3.1,W3.1,F0.3,B0.0,F3.2,I3.2,"
            "W3.2,B0.1,F3.3,I3.3,W3.3,B0.2,B0.3\n"
            "F1.0,F2.0,F1.1,F2.1,I2.0,W2.0,F1.2,I1.0,W1.0,F2.2,I2.1,W2.1,F1.3,"
            "I1.1,W1.1,F2.3,I2.2,W2.2,I1.2,I2.3,I1.3,W1.2,W2.3,W1.3\n");
  // The peak equals that of 1F1B's first rank: 2S half stages.
  for (int ranks = 1; ranks <= 8; ++ranks) {
    const Schedule many = ZeroBubbleV(ranks, 32);
    const std::vector<int> peak = PeakInFlight(many);
    for (int r = 0; r < ranks; ++r)
      EXPECT_LE(peak[r] + peak[2 * ranks - 1 - r], 2 * ranks + 1);
  }
}

TEST(ScheduleGeneratorsTest, Async2bw) {
  const Schedule schedule = *Async2bw(3, 2);
  EXPECT_EQ(WriteScheduleCsv(schedule),
            "F0.0@-1,F0.1@-1,|,F0.2,B0.0@-1,F0.3,B0.1@-1\n"
            "F1.0@-1,|,F1.1@-1,B1.0@-1,F1.2,B1.1@-1\n"
            "|,F2.0@-1,B2.0@-1,F2.1@-1,B2.1@-1\n");
  for (int ranks = 2; ranks <= 8; ++ranks)
    for (int m = ranks - 1; m <= 2 * ranks; ++m)
      EXPECT_THAT(PeakVersions(*Async2bw(ranks, m)), Each(2));
  EXPECT_THAT(std::string(Async2bw(5, 3).status().message()),
              AllOf(HasSubstr("expected at least 4 microbatches, found 3"),
                    HasSubstr("on 5 stages")));
}

TEST(ScheduleGeneratorsTest, Async) {
  EXPECT_EQ(WriteScheduleCsv(Async(3, 1)),
            "F0.0@-2,F0.1@-1,|,F0.2,B0.0@-2\n"
            "F1.0@-1,|,F1.1,B1.0@-1\n"
            "|,F2.0,B2.0\n");
  // One version per microbatch in flight, since each makes an update.
  EXPECT_THAT(PeakInFlight(Async(4, 1)), ElementsAre(4, 3, 2, 1));
  EXPECT_THAT(PeakVersions(Async(4, 1)), ElementsAre(4, 3, 2, 1));
  EXPECT_THAT(PeakVersions(OneForwardOneBackward(4, 1)), Each(1));
}

TEST(ScheduleGeneratorsTest, UnrolledRunCountsUpdates) {
  EXPECT_EQ(WriteScheduleCsv(Unroll(Async(2, 1), 4)),
            "F0.0,F0.1,B0.0,F0.2@1,B0.1,F0.3@2,B0.2@1,B0.3@2\n"
            "F1.0,B1.0,F1.1@1,B1.1@1,F1.2@2,B1.2@2,F1.3@3,B1.3@3\n");
}

}  // namespace
}  // namespace partita::core
