// Tests which tables without a flush form steps, and the order of the cells of
// a step.
#include "compiler/pipeline/delayed_step.h"

#include <algorithm>

#include "compiler/core/check_schedule.h"
#include "compiler/core/schedule_csv.h"
#include "compiler/core/schedule_generators.h"
#include "gtest/gtest.h"

namespace partita::pipeline {
namespace {

using core::Cell;
using core::Schedule;
using core::Work;

Schedule halved(Schedule schedule) {
  for (auto* part : {&schedule.warm_up, &schedule.cells})
    for (std::vector<Cell>& cells : *part) {
      std::vector<Cell> halves;
      for (Cell cell : cells) {
        if (cell.work == Work::kBackward) {
          cell.work = Work::kInputGrad;
          halves.push_back(cell);
          cell.work = Work::kWeightGrad;
        }
        halves.push_back(cell);
      }
      cells = halves;
    }
  return schedule;
}

std::string errorOf(const std::string& table) {
  auto schedule = core::ReadScheduleCsv(table, "own.csv");
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_TRUE(core::CheckSchedule(*schedule).ok())
      << core::CheckSchedule(*schedule);
  return std::string(delayedWeights(*schedule).status().message());
}

TEST(DelayedStepTest, KnowsTheGeneratorsInWhateverOrder) {
  for (int ranks = 1; ranks <= 5; ++ranks)
    for (int count = 1; count <= 9; ++count)
      for (Schedule schedule :
           {core::Async(ranks, count), halved(core::Async(ranks, count))}) {
        EXPECT_EQ(*delayedWeights(schedule), "newest");
        std::reverse(schedule.cells.back().begin(),
                     schedule.cells.back().end());
        EXPECT_EQ(*delayedWeights(schedule), "newest");
        if (count < ranks - 1) continue;
        EXPECT_EQ(*delayedWeights(halved(*core::Async2bw(ranks, count))),
                  "previous");
      }
}

TEST(DelayedStepTest, RefusesOtherSteps) {
  const std::string rest =
      " in the period; cells may be in any order and on any rank, and I and W "
      "may replace B, but the work must be the same";
  EXPECT_EQ(errorOf("F0.0@-1,F0.1@-1,|,F0.2,B0.0@-1,F0.3,B0.1@-1\n"
                    "|,F1.0@-1,B1.0@-1,F1.1@-1,B1.1@-1"),
            "without a flush expected a stage to be as many microbatches ahead "
            "of its gradients as there are stages behind it, here stage 0 to "
            "compute forwards of 1 to 2 and gradients of 0 to 1, found "
            "F0.3" +
                rest);
  EXPECT_EQ(errorOf("F0.0@-2,|,F0.1@-2,B0.0@-2,F0.2@-1,B0.1@-2\n"
                    "|,F1.0@-2,B1.0@-2,F1.1@-2,B1.1@-2"),
            "without a flush expected the versions of weights that async has "
            "everywhere (here F0.1), or those of async-2bw (F0.1@-1), found "
            "F0.1@-2" +
                rest);
}

TEST(DelayedStepTest, CellsAreMarkedByTheirStep) {
  const Schedule step = delayedStep(core::Async(3, 4));
  EXPECT_TRUE(step.flushes);
  for (int stage = 0; stage < 3; ++stage)
    for (Work work : {Work::kForward, Work::kBackward})
      for (int microbatch = 0; microbatch < 4; ++microbatch)
        EXPECT_EQ(std::count(step.cells[stage].begin(), step.cells[stage].end(),
                             Cell{work, stage, microbatch, 0}),
                  1);
  EXPECT_EQ(step.cells[0].front(), (Cell{Work::kForward, 0, 0, 0}));
}

TEST(DelayedStepTest, TheClockWaitsForWhatIsOfTheSameStep) {
  for (int ranks = 1; ranks <= 4; ++ranks)
    for (int count = 1; count <= 6; ++count) {
      const Schedule schedule = halved(core::Async(ranks, count));
      const auto clock = delayedClock(schedule);
      for (int rank = 0; rank < ranks; ++rank) {
        ASSERT_EQ(clock[rank].size(), schedule.cells[rank].size());
        for (size_t i = 0; i < clock[rank].size(); ++i) {
          if (i > 0) EXPECT_GE(clock[rank][i].start, clock[rank][i - 1].end);
          for (const Cell& need :
               core::Needs(schedule.cells[rank][i], schedule.stages))
            for (size_t j = 0; j < clock[need.stage].size(); ++j) {
              const Cell& other = schedule.cells[need.stage][j];
              if (other.work == need.work &&
                  other.microbatch == need.microbatch)
                EXPECT_GE(clock[rank][i].start, clock[need.stage][j].end);
            }
        }
      }
    }
}

}  // namespace
}  // namespace partita::pipeline
