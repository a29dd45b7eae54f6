// Compares bubbles with formulas and published figures; checks drawings.
#include "compiler/core/timetable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/core/schedule_generators.h"

namespace partita::core {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Le;

Costs Same(int stages, StageCost cost) {
  Costs costs;
  costs.stages.assign(stages, cost);
  return costs;
}

TEST(TimetableTest, GPipeAndOneForwardOneBackward) {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    for (int m = 1; m <= 16; ++m) {
      const double bubble = (ranks - 1.0) / (m + ranks - 1);
      for (const Schedule& schedule :
           {GPipe(ranks, m), OneForwardOneBackward(ranks, m)}) {
        const Timetable table = MakeTimetable(schedule);
        EXPECT_DOUBLE_EQ(table.step, 3 * (m + ranks - 1));
        EXPECT_NEAR(table.bubble, bubble, 1e-12);
        for (double rank : table.rank_bubble) EXPECT_NEAR(rank, bubble, 1e-12);
        // Case E1 counts the update as one more.
        EXPECT_DOUBLE_EQ(
            MakeTimetable(schedule, Same(ranks, {1, 1, 1, 1})).step + 1,
            2 * (ranks + m - 1) + 1);
      }
    }
  }
}

TEST(TimetableTest, InterleavedDividesTheBubble) {
  for (int ranks = 2; ranks <= 8; ++ranks) {
    for (int v : {2, 3, 4}) {
      for (int groups = 1; groups <= 4; ++groups) {
        const int m = groups * ranks;
        // A rank's chunks together cost as much as its single stage otherwise.
        const Timetable table = MakeTimetable(
            Interleaved(ranks, v, m),
            Same(v * ranks, {1.0 / v, 2.0 / v, 1.0 / v, 1.0 / v}));
        EXPECT_NEAR(table.step, 3 * m + 3 * (ranks - 1.0) / v, 1e-9);
        EXPECT_NEAR(table.bubble, (ranks - 1.0) / (v * m + ranks - 1), 1e-9);
      }
    }
  }
}

TEST(TimetableTest, ZeroBubbleH1LosesAThirdOfTheTime) {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    for (int m = ranks; m <= 16; ++m) {
      const double flush = MakeTimetable(OneForwardOneBackward(ranks, m)).step;
      const Timetable table = MakeTimetable(ZeroBubbleH1(ranks, m));
      EXPECT_DOUBLE_EQ(table.step - 3 * m, (flush - 3 * m) / 3);
      EXPECT_NEAR(table.bubble, (ranks - 1.0) / (3 * m + ranks - 1), 1e-12);
    }
  }
}

// The longest time from a rank's first cell to the end of its last.
double LongestSpan(const Timetable& table) {
  double span = 0;
  for (const std::vector<TimedCell>& cells : table.ranks)
    span = std::max(span, cells.back().end - cells.front().start);
  return span;
}

TEST(TimetableTest, ZeroBubbleVNeverWaits) {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    for (int m : {2 * ranks - 1, 2 * ranks, 64}) {
      const Timetable table = MakeTimetable(
          ZeroBubbleV(ranks, m), Same(2 * ranks, {0.5, 1, 0.5, 0.5}));
      EXPECT_DOUBLE_EQ(LongestSpan(table), 3 * m);
      EXPECT_LE(table.bubble, (ranks - 1.0) / (6 * m + ranks - 1) + 1e-12);
    }
  }
}

TEST(TimetableTest, PublishedBubbles) {
  // Zero Bubble Pipeline Parallelism (arXiv 2401.10241), tables 5 and 9: times
  // in ms and bubbles of 1F1B and ZB-H1, as parts of the longest span.
  struct Row {
    int ranks, microbatches;
    double forward, input_grad, weight_grad, transfer;
    double one_f_one_b, zb_h1;
  };
  for (const Row& row : {
           Row{8, 24, 18.522, 18.086, 9.337, 0.601, 0.2431, 0.1585},
           Row{8, 32, 18.513, 18.086, 9.331, 0.626, 0.1985, 0.1242},
           Row{8, 64, 18.546, 18.097, 9.321, 0.762, 0.1240, 0.0674},
           Row{8, 24, 29.718, 29.444, 19.927, 0.527, 0.2347, 0.1323},
           Row{8, 64, 29.935, 29.621, 19.388, 0.535, 0.1091, 0.0554},
           Row{16, 48, 11.347, 11.248, 8.132, 0.377, 0.2552, 0.1397},
           Row{16, 128, 11.325, 11.308, 8.109, 0.378, 0.1251, 0.0576},
           Row{32, 96, 10.419, 10.207, 7.715, 0.408, 0.2646, 0.1421},
       }) {
    Costs costs =
        Same(row.ranks, {row.forward, row.input_grad + row.weight_grad,
                         row.input_grad, row.weight_grad});
    costs.transfer = row.transfer;
    const double work =
        row.microbatches * (row.forward + row.input_grad + row.weight_grad);
    auto bubble = [&](const Schedule& schedule) {
      return 1 - work / LongestSpan(MakeTimetable(schedule, costs));
    };
    const int m = row.microbatches;
    EXPECT_NEAR(bubble(OneForwardOneBackward(row.ranks, m)), row.one_f_one_b,
                1e-4);
    EXPECT_NEAR(bubble(ZeroBubbleH1(row.ranks, m)), row.zb_h1, 1e-4);
  }
}

TEST(TimetableTest, WithoutFlushesThereIsNoBubble) {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    for (int m : {1, 3, 8}) {
      const Timetable table = MakeTimetable(Async(ranks, m));
      EXPECT_NEAR(table.step, 3 * m, 1e-9);
      EXPECT_THAT(table.rank_bubble, Each(Le(1e-9)));
    }
  }
  // The slowest stage sets the pace.
  Costs costs;
  costs.stages = {{1, 2, 1, 1}, {2, 4, 2, 2}, {1, 2, 1, 1}};
  const Timetable table = MakeTimetable(*Async2bw(3, 2), costs);
  EXPECT_NEAR(table.step, 12, 1e-9);
  EXPECT_NEAR(table.rank_bubble[0], 0.5, 1e-9);
  EXPECT_NEAR(table.rank_bubble[1], 0, 1e-9);
}

TEST(TimetableTest, TimesOfCellsAndTransfers) {
  Costs costs;
  costs.stages = {{1, 3, 1, 1}, {2, 5, 1, 1}};
  costs.transfer = 0.5;
  const Timetable table = MakeTimetable(GPipe(2, 1), costs);
  auto text = [](const TimedCell& timed) {
    return ToString(timed.cell) + " " + std::to_string(timed.start) + " " +
           std::to_string(timed.end);
  };
  EXPECT_EQ(text(table.ranks[0][0]), "F0.0 0.000000 1.000000");
  EXPECT_EQ(text(table.ranks[1][0]), "F1.0 1.500000 3.500000");
  EXPECT_EQ(text(table.ranks[1][1]), "B1.0 3.500000 8.500000");
  EXPECT_EQ(text(table.ranks[0][1]), "B0.0 9.000000 12.000000");
  ASSERT_EQ(table.transfers.size(), 2u);
  EXPECT_EQ(table.transfers[1].from, 1);
  EXPECT_EQ(table.transfers[1].to, 0);
  EXPECT_EQ(table.transfers[1].start, 8.5);
  EXPECT_EQ(table.transfers[1].end, 9);
  EXPECT_EQ(table.step, 12);
  EXPECT_DOUBLE_EQ(table.rank_bubble[0], 8.0 / 12);
  EXPECT_DOUBLE_EQ(table.rank_bubble[1], 5.0 / 12);
}

TEST(TimetableTest, InFlightOverTime) {
  const Timetable table = MakeTimetable(OneForwardOneBackward(2, 2));
  std::vector<std::pair<double, int>> changes;
  for (const InFlightChange& change : table.in_flight[0])
    changes.push_back({change.time, change.count});
  EXPECT_THAT(changes, ElementsAre(std::pair(1., 1), std::pair(2., 2),
                                   std::pair(6., 1), std::pair(9., 0)));
  for (const Schedule& schedule :
       {GPipe(4, 6), ZeroBubbleH1(4, 6), ZeroBubbleV(3, 9)}) {
    const Timetable of = MakeTimetable(schedule);
    for (int stage = 0; stage < schedule.stages; ++stage) {
      int peak = 0;
      for (const InFlightChange& change : of.in_flight[stage])
        peak = std::max(peak, change.count);
      EXPECT_EQ(peak, PeakInFlight(schedule)[stage]);
    }
  }
}

TEST(TimetableTest, Text) {
  EXPECT_EQ(
      DrawText(MakeTimetable(ZeroBubbleH1(2, 3))),
      "2 ranks, 2 stages, 3 microbatches, a step takes 10, bubble 10.0%\n"
      "\n"
      "               |0        |3.333    |6.667\n"
      "rank 0 stage 0 F0-F1-...B0----F2-B1----B2----\n"
      "rank 1 stage 1 ...F0-I0-F1-I1-W0-F2-I2-W1-W2-\n"
      "\n"
      "F forward, B backward, I input gradient, W weight gradient, with the "
      "microbatch; . bubble\n"
      "rank 0: bubble 10.0%, in flight at most 2 on stage 0\n"
      "rank 1: bubble 10.0%, in flight at most 2 on stage 1\n");
  EXPECT_THAT(
      DrawText(MakeTimetable(ZeroBubbleV(2, 3), Same(4, {0.5, 1, 0.5, 0.5}))),
      HasSubstr("rank 0 stage 0 F0-F1-F2-"));
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines(1);
  for (char c : text) {
    if (c == '\n')
      lines.emplace_back();
    else
      lines.back() += c;
  }
  return lines;
}

TEST(TimetableTest, LongTextsContinueBelow) {
  for (const Schedule& schedule :
       {OneForwardOneBackward(4, 64), Interleaved(4, 2, 8), GPipe(8, 500)}) {
    Costs costs;
    costs.transfer = 0.3;
    const Timetable table = MakeTimetable(schedule, costs);
    const std::string text = DrawText(table, 80);
    int rulers = 0;
    for (const std::string& line : Lines(text)) {
      if (line.rfind("rank", 0) == 0 && line.find(':') == std::string::npos)
        EXPECT_LE(line.size(), 80u) << line;
      if (line.find(" |") == std::string::npos) continue;
      EXPECT_LE(line.size(), 80u) << line;
      ++rulers;
    }
    EXPECT_GT(rulers, 1);
    EXPECT_LE(rulers, 13);
  }
}

// Checks that every element is closed in order; counts elements `name`.
int CountElements(const std::string& svg, const std::string& name) {
  std::vector<std::string> open;
  int count = 0;
  for (size_t at = 0; (at = svg.find('<', at)) != std::string::npos;) {
    const size_t end = svg.find('>', at);
    EXPECT_NE(end, std::string::npos);
    const std::string tag = svg.substr(at + 1, end - at - 1);
    at = end;
    if (tag.rfind("!--", 0) == 0) continue;
    const std::string word = tag.substr(0, tag.find_first_of(" /", 1));
    if (tag[0] == '/') {
      EXPECT_FALSE(open.empty());
      if (!open.empty()) {
        EXPECT_EQ(open.back(), tag.substr(1));
        open.pop_back();
      }
      continue;
    }
    if (tag.find(name) == 0) ++count;
    if (tag.back() != '/') open.push_back(word);
  }
  EXPECT_THAT(open, testing::IsEmpty());
  return count;
}

TEST(TimetableTest, Svg) {
  const Schedule schedule = ZeroBubbleV(3, 7);
  const Timetable table = MakeTimetable(schedule);
  const std::string svg = DrawSvg(table);
  size_t cells = 0;
  for (const std::vector<Cell>& rank : schedule.cells) cells += rank.size();
  EXPECT_EQ(CountElements(svg, "g class=\"cell\""), static_cast<int>(cells));
  EXPECT_EQ(table.transfers.size(), 2u * 4 * 7);
  EXPECT_THAT(svg, HasSubstr("<title>F0.0, 0 to 1</title>"));
  EXPECT_THAT(svg, HasSubstr("rank 0, stage 5"));
  EXPECT_THAT(svg, HasSubstr("weight gradient"));
  EXPECT_EQ(svg.find("http", svg.find("http") + 1), std::string::npos)
      << "refers to nothing outside but its namespace";
}

TEST(TimetableTest, NoTimeAtAll) {
  const Timetable table = MakeTimetable(GPipe(2, 1), Same(2, {0, 0, 0, 0}));
  EXPECT_EQ(table.bubble, 0);
  EXPECT_THAT(DrawText(table), HasSubstr("a step takes 0, bubble 0.0%"));
  EXPECT_EQ(CountElements(DrawSvg(table), "g class=\"cell\""), 4);
}

TEST(TimetableTest, WhereNothingIsTrainedNothingIsInFlight) {
  const Timetable table = MakeTimetable(ForwardOnly(GPipe(2, 3)));
  EXPECT_EQ(table.end, 4);
  EXPECT_EQ(table.bubble, 0.25);
  EXPECT_THAT(DrawText(table), testing::HasSubstr("rank 1: bubble 25.0%\n"));
}

}  // namespace
}  // namespace partita::core
