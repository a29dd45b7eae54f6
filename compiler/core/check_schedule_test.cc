// Tests every error message. Random mutations must be refused and random legal
// reorderings accepted, as decided by an independent criterion.
#include "compiler/core/check_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <string>

#include "compiler/core/schedule_csv.h"
#include "compiler/core/schedule_generators.h"

namespace partita::core {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

std::string Error(const std::string& csv, std::vector<int> in_flight = {}) {
  const absl::StatusOr<Schedule> schedule = ReadScheduleCsv(csv, "s.csv");
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return std::string(CheckSchedule(*schedule, {in_flight}).message());
}

TEST(CheckScheduleTest, Counts) {
  EXPECT_EQ(Error("F0.0,F0.1,B0.0,B0.1"), "");
  EXPECT_EQ(Error("F0.0,F0.1,B0.0"),
            "schedule: rank 0: expected a cell I0.1 or B0.1, found none");
  EXPECT_EQ(Error("F0.0,F0.1,B0.0,I0.1"),
            "schedule: rank 0: expected a cell W0.1 or B0.1, found none");
  EXPECT_EQ(Error("F0.0,F0.1,B0.0,I0.1,B0.1"),
            "schedule: rank 0, cell 5 (B0.1): expected each result once, found "
            "the same in cell 4 (I0.1)");
  EXPECT_EQ(Error("F0.0,B0.0\nF1.0,F0.0,B1.0"),
            "schedule: rank 1, cell 2 (F0.0): expected cells of this rank's "
            "stages, found stage 0, which is on rank 0");
}

TEST(CheckScheduleTest, Order) {
  EXPECT_EQ(Error("F0.0,B0.1,F0.1,B0.0"),
            "schedule: rank 0, cell 2 (B0.1): expected what it needs before "
            "it, found cell 3 (F0.1) after it");
  EXPECT_EQ(Error("F0.0,W0.0,I0.0"),
            "schedule: rank 0, cell 2 (W0.0): expected what it needs before "
            "it, found cell 3 (I0.0) after it");
  EXPECT_EQ(Error("F0.0,B0.0,F0.1,B0.1\nF1.0,F1.1,B1.0,B1.1"),
            "schedule: rank 0, cell 2 (B0.0): expected an order in which every "
            "rank goes on, found that ranks wait for each other: it waits for "
            "cell 3 (B1.0) of rank 1; rank 1 stands at cell 2 (F1.1) and waits "
            "for cell 3 (F0.1) of rank 0");
}

TEST(CheckScheduleTest, InFlight) {
  const std::string two = "F0.0,F0.1,B0.0,B0.1\nF1.0,B1.0,F1.1,B1.1";
  EXPECT_EQ(Error(two, {2, 1}), "");
  EXPECT_EQ(Error(two, {1, 1}),
            "schedule: rank 0, cell 2 (F0.1): expected at most 1 microbatches "
            "in flight on stage 0, found 2");
  EXPECT_EQ(Error(two, {1}),
            "schedule: expected a limit in flight for each of 2 stages, found "
            "1");
  // Saved activations live until the weight gradient.
  EXPECT_EQ(Error("F0.0,I0.0,F0.1,W0.0,B0.1", {1}),
            "schedule: rank 0, cell 3 (F0.1): expected at most 1 microbatches "
            "in flight on stage 0, found 2");
}

TEST(CheckScheduleTest, WhereNothingIsTrained) {
  EXPECT_EQ(Error("F0.0,F0.1\nF1.0,F1.1", {0, 0}), "");
  EXPECT_EQ(Error("F0.0,F0.1\nF1.1"),
            "schedule: rank 1: expected a cell F1.0, found none");
  EXPECT_EQ(Error("F1.0,F0.0\n,\n"),
            "schedule: rank 0, cell 1 (F1.0): expected what it needs before "
            "it, found cell 2 (F0.0) after it");
  Schedule schedule = GPipe(2, 1);
  schedule.trains = false;
  EXPECT_EQ(CheckSchedule(schedule).message(),
            "schedule: rank 0, cell 2 (B0.0): expected forwards alone, as "
            "nothing is trained");
  schedule = Async(2, 1);
  schedule.trains = false;
  EXPECT_EQ(CheckSchedule(schedule).message(),
            "schedule: expected a schedule that trains, as it does not flush");
}

TEST(CheckScheduleTest, Versions) {
  EXPECT_EQ(Error("F0.0@-1,|,F0.1,B0.0@-1\n|,F1.0,B1.0"), "");
  EXPECT_EQ(Error("F0.0@-1,|,F0.1,B0.0@-1\n|,F1.0,B1.0@-1"),
            "schedule: rank 1, cell 4 (B1.1): expected the version of the "
            "weights that its forward used, 1");
  EXPECT_EQ(Error("F0.0@-1,|,F0.1@1,B0.0@-1\n|,F1.0,B1.0"),
            "schedule: rank 0, cell 2 (F0.1@1): expected a version of the "
            "weights that exists, at most 0");
  EXPECT_EQ(Error("F0.0,F0.1,|,F0.3,B0.0"),
            "schedule: rank 0, cell 3 (F0.3): expected a microbatch from 0 to "
            "2");
  Schedule schedule = GPipe(1, 1);
  schedule.cells[0][1].version = 1;
  EXPECT_EQ(CheckSchedule(schedule).message(),
            "schedule: rank 0, cell 2 (B0.0@1): expected version 0, as the "
            "schedule flushes every step");
}

TEST(CheckScheduleTest, Shape) {
  auto error = [](const std::function<void(Schedule&)>& change) {
    Schedule schedule = GPipe(2, 2);
    change(schedule);
    return std::string(CheckSchedule(schedule).message());
  };
  EXPECT_EQ(error([](Schedule& s) { s.microbatches = 0; }),
            "schedule: expected at least one rank, stage and microbatch, found "
            "2, 2 and 0");
  EXPECT_EQ(error([](Schedule& s) { s.rank_of_stage = {0}; }),
            "schedule: expected a rank for each of 2 stages, found 1");
  EXPECT_EQ(error([](Schedule& s) { s.rank_of_stage = {0, 2}; }),
            "schedule: stage 1: expected a rank from 0 to 1, found 2");
  EXPECT_EQ(error([](Schedule& s) { s.flushes = false; }),
            "schedule: expected 2 ranks with a warm-up, found 0");
  EXPECT_EQ(error([](Schedule& s) { s.cells[1][0].stage = 2; }),
            "schedule: rank 1, cell 1 (F2.0): expected a stage from 0 to 1");
  EXPECT_EQ(error([](Schedule& s) { s.cells[1][0].microbatch = 2; }),
            "schedule: rank 1, cell 1 (F1.2): expected a microbatch from 0 to "
            "1");
}

// --- Independent criterion: precedence as a graph of names. ---

// Returns the results of a cell: "f0.3", "i0.3", "w0.3".
std::vector<std::string> Results(const Cell& cell) {
  const std::string at =
      std::to_string(cell.stage) + "." + std::to_string(cell.microbatch);
  switch (cell.work) {
    case Work::kForward:
      return {"f" + at};
    case Work::kInputGrad:
      return {"i" + at};
    case Work::kWeightGrad:
      return {"w" + at};
    case Work::kBackward:
      return {"i" + at, "w" + at};
  }
  return {};
}

bool HasCycle(const std::vector<std::vector<int>>& after) {
  std::vector<int> state(after.size());  // 1: on the way, 2: done
  std::function<bool(int)> visit = [&](int node) {
    if (state[node] != 0) return state[node] == 1;
    state[node] = 1;
    for (int next : after[node])
      if (visit(next)) return true;
    state[node] = 2;
    return false;
  };
  for (size_t node = 0; node < after.size(); ++node)
    if (visit(static_cast<int>(node))) return true;
  return false;
}

bool IsLegal(const Schedule& schedule, const std::vector<int>& in_flight) {
  std::map<std::string, int> node_of;
  std::vector<std::vector<int>> after;
  for (int rank = 0; rank < schedule.ranks(); ++rank) {
    for (size_t i = 0; i < schedule.cells[rank].size(); ++i) {
      const Cell& cell = schedule.cells[rank][i];
      if (schedule.rank_of_stage[cell.stage] != rank) return false;
      const int node = static_cast<int>(after.size());
      after.emplace_back();
      if (i > 0) after[node - 1].push_back(node);
      for (const std::string& result : Results(cell))
        if (!node_of.emplace(result, node).second) return false;
    }
  }
  for (int s = 0; s < schedule.stages; ++s) {
    for (int k = 0; k < schedule.microbatches; ++k) {
      auto node = [&](const char* what, int stage) {
        const auto it = node_of.find(what + std::to_string(stage) + "." +
                                     std::to_string(k));
        return it == node_of.end() ? -1 : it->second;
      };
      if (node("f", s) < 0 || node("i", s) < 0 || node("w", s) < 0)
        return false;
      after[node("f", s)].push_back(node("i", s));
      if (node("i", s) != node("w", s))
        after[node("i", s)].push_back(node("w", s));
      if (s + 1 == schedule.stages) continue;
      if (node("f", s + 1) < 0 || node("i", s + 1) < 0) return false;
      after[node("f", s)].push_back(node("f", s + 1));
      after[node("i", s + 1)].push_back(node("i", s));
    }
  }
  for (int s = 0; s < schedule.stages; ++s) {
    const auto& cells = schedule.cells[schedule.rank_of_stage[s]];
    for (auto end = cells.begin(); end != cells.end(); ++end) {
      auto count = [&](const std::string& letters) {
        return std::count_if(cells.begin(), end + 1, [&](const Cell& cell) {
          return cell.stage == s &&
                 letters.find(ToString(cell)[0]) != std::string::npos;
        });
      };
      if (count("F") - count("BW") > in_flight[s]) return false;
    }
  }
  return !HasCycle(after);
}

class MutationTest : public testing::Test {
 protected:
  int Below(size_t n) {
    return std::uniform_int_distribution<int>(0,
                                              static_cast<int>(n) - 1)(random_);
  }

  Schedule Any() {
    const int ranks = 2 + Below(4), microbatches = 2 + Below(7);
    switch (Below(5)) {
      case 0:
        return GPipe(ranks, microbatches);
      case 1:
        return OneForwardOneBackward(ranks, microbatches);
      case 2:
        return Interleaved(ranks, 2 + Below(2), microbatches);
      case 3:
        return ZeroBubbleH1(ranks, microbatches);
      default:
        return ZeroBubbleV(ranks, microbatches);
    }
  }

  // Moves, repeats or drops a cell, or gives it to another rank.
  void Mutate(Schedule& schedule) {
    std::vector<Cell>& cells = schedule.cells[Below(schedule.ranks())];
    const auto at = cells.begin() + Below(cells.size());
    Cell cell = *at;
    switch (Below(5)) {
      case 0:
        cells.erase(at);
        cells.insert(cells.begin() + Below(cells.size() + 1), cell);
        break;
      case 1:
        cells.insert(cells.begin() + Below(cells.size() + 1), cell);
        break;
      case 2:
        cells.erase(at);
        break;
      case 3:
        at->microbatch = Below(schedule.microbatches);
        at->stage = Below(schedule.stages);
        break;
      default:
        at->work = static_cast<Work>(Below(4));
    }
  }

  std::mt19937 random_{17};
};

TEST_F(MutationTest, EveryBrokenScheduleIsRefusedWithRankAndCell) {
  int refused = 0;
  std::map<std::string, int> kinds;
  while (refused < 2000) {
    Schedule schedule = Any();
    const std::vector<int> in_flight = PeakInFlight(schedule);
    const absl::Status before = CheckSchedule(schedule, {in_flight});
    ASSERT_TRUE(before.ok()) << before;
    Mutate(schedule);
    const absl::Status status = CheckSchedule(schedule, {in_flight});
    ASSERT_EQ(status.ok(), IsLegal(schedule, in_flight))
        << status << "\n"
        << WriteScheduleCsv(schedule);
    if (status.ok()) continue;
    ++refused;
    const std::string message(status.message());
    EXPECT_THAT(message, ContainsRegex("rank [0-9]+.*[FBIW][0-9]+\\.[0-9]+"));
    for (const char* kind : {"each result once", "found none", "needs before",
                             "wait for each other", "in flight"})
      if (message.find(kind) != std::string::npos) ++kinds[kind];
  }
  EXPECT_EQ(kinds.size(), 5u) << "every check has refused something";
  for (const auto& [kind, count] : kinds) EXPECT_GE(count, 20) << kind;
}

TEST_F(MutationTest, LegalReorderingsAreAccepted) {
  int accepted = 0, illegal = 0;
  while (accepted < 400) {
    Schedule schedule = Any();
    const std::vector<int> in_flight = PeakInFlight(schedule);
    // Several swaps lead further from the generator's order.
    for (int swaps = 1 + Below(6); swaps > 0; --swaps) {
      std::vector<Cell>& cells = schedule.cells[Below(schedule.ranks())];
      const int at = Below(cells.size() - 1);
      std::swap(cells[at], cells[at + 1]);
      if (IsLegal(schedule, in_flight)) {
        const absl::Status status = CheckSchedule(schedule, {in_flight});
        EXPECT_TRUE(status.ok()) << status << "\n"
                                 << WriteScheduleCsv(schedule);
        ++accepted;
      } else {
        EXPECT_FALSE(CheckSchedule(schedule, {in_flight}).ok());
        ++illegal;
        std::swap(cells[at], cells[at + 1]);
      }
    }
  }
  EXPECT_GE(illegal, 200);
}

}  // namespace
}  // namespace partita::core
