// Tests the places of sends and receives. Random mutations of a program must be
// refused and random legal reorderings accepted, as decided by an independent
// criterion.
#include "compiler/core/transfers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>

#include "compiler/core/schedule_csv.h"
#include "compiler/core/schedule_generators.h"

namespace partita::core {
namespace {

using testing::ContainsRegex;
using testing::ElementsAre;
using Kind = Action::Kind;

std::vector<std::string> Texts(const std::vector<Action>& actions) {
  std::vector<std::string> texts;
  for (const Action& action : actions) texts.push_back(ToString(action));
  return texts;
}

TEST(TransfersTest, SendAfterProducerAndReceiveBeforeConsumer) {
  // Case E5.
  const TransferProgram program = PlaceTransfers(ZeroBubbleH1(2, 2));
  EXPECT_TRUE(program.warm_up.empty());
  EXPECT_THAT(Texts(program.actions[0]),
              ElementsAre("F0.0", "send F0.0 to rank 1", "F0.1",
                          "send F0.1 to rank 1", "receive I1.0 from rank 1",
                          "B0.0", "receive I1.1 from rank 1", "B0.1"));
  EXPECT_THAT(
      Texts(program.actions[1]),
      ElementsAre("receive F0.0 from rank 0", "F1.0", "I1.0",
                  "send I1.0 to rank 0", "receive F0.1 from rank 0", "F1.1",
                  "I1.1", "send I1.1 to rank 0", "W1.0", "W1.1"));
}

TEST(TransfersTest, WhereNothingIsTrainedNoGradientTravels) {
  const Schedule schedule = ForwardOnly(GPipe(2, 1));
  TransferProgram program = PlaceTransfers(schedule);
  EXPECT_TRUE(CheckTransfers(schedule, program).ok());
  ASSERT_EQ(program.actions[1].size(), 2u);
  EXPECT_EQ(ToString(program.actions[1][0]), "receive F0.0 from rank 0");
  program.actions[1].erase(program.actions[1].begin());
  EXPECT_EQ(CheckTransfers(schedule, program).message(),
            "transfers: rank 1, action 1 (F1.0): expected a receive of F0.0 "
            "before it, found none");
}

TEST(TransfersTest, NothingTravelsWithinARank) {
  const TransferProgram program = PlaceTransfers(ZeroBubbleV(1, 2));
  for (const Action& action : program.actions[0])
    EXPECT_EQ(action.kind, Kind::kCompute);
}

TEST(TransfersTest, ReceivesComeInTheOrderOfSends) {
  // Rank 0 first needs F1.1, which is sent second.
  const absl::StatusOr<Schedule> schedule = ReadScheduleCsv(
      "F0.0,F0.1,F2.1,F2.0,B2.1,B2.0,B0.0,B0.1\n"
      "F1.0,F1.1,F3.1,B3.1,F3.0,B3.0,B1.0,B1.1\n",
      "s.csv");
  ASSERT_TRUE(schedule.ok());
  const TransferProgram program = PlaceTransfers(*schedule);
  EXPECT_THAT(
      Texts({program.actions[0].begin(), program.actions[0].begin() + 8}),
      ElementsAre("F0.0", "send F0.0 to rank 1", "F0.1", "send F0.1 to rank 1",
                  "receive F1.0 from rank 1", "receive F1.1 from rank 1",
                  "F2.1", "send F2.1 to rank 1"));
  EXPECT_TRUE(CheckTransfers(*schedule, program).ok());
}

TEST(TransfersTest, PeriodsReceiveWhatTheStepBeforeSent) {
  const Schedule schedule = Async(2, 1);
  TransferProgram program = PlaceTransfers(schedule);
  EXPECT_THAT(Texts(program.warm_up[0]),
              ElementsAre("F0.0@-1", "send F0.0 to rank 1"));
  EXPECT_THAT(Texts(program.actions[0]),
              ElementsAre("F0.1", "send F0.1 to rank 1",
                          "receive I1.0 from rank 1", "B0.0@-1"));
  EXPECT_THAT(Texts(program.actions[1]),
              ElementsAre("receive F0.0 from rank 0", "F1.0", "B1.0",
                          "send I1.0 to rank 0"));
  EXPECT_TRUE(CheckTransfers(schedule, program).ok());
  std::swap(program.actions[1][0], program.actions[1][1]);
  EXPECT_EQ(CheckTransfers(schedule, program).message(),
            "transfers: rank 1, action 1 (F1.0): expected a receive of F0.0 "
            "before it, found none");
  program.warm_up.clear();
  EXPECT_EQ(CheckTransfers(schedule, program).message(),
            "transfers: expected actions of 2 ranks, found 2 (and as many "
            "warm-ups)");
}

TEST(TransfersTest, Refusals) {
  const Schedule schedule = GPipe(2, 2);
  auto error = [&](const std::function<void(TransferProgram&)>& change) {
    TransferProgram program = PlaceTransfers(schedule);
    change(program);
    return std::string(CheckTransfers(schedule, program).message());
  };
  EXPECT_EQ(error([](TransferProgram&) {}), "");
  // Rank 0: F0.0 send F0.1 send, receive B0.0, receive B0.1. Rank 1: receive
  // F1.0 receive F1.1 B1.0 send B1.1 send.
  EXPECT_EQ(error([](auto& p) { std::swap(p.actions[0][0], p.actions[0][2]); }),
            "transfers: rank 0, action 1 (F0.1): expected the schedule's cells "
            "in their order, here F0.0");
  EXPECT_EQ(error([](auto& p) { p.actions[0].pop_back(); }),
            "transfers: rank 0: expected the schedule's cells in their order, "
            "B0.1 next, found the end");
  EXPECT_EQ(error([](auto& p) { std::swap(p.actions[0][0], p.actions[0][1]); }),
            "transfers: rank 0, action 1 (send F0.0 to rank 1): expected it "
            "after the cell that makes the value, found it before, or no such "
            "cell");
  EXPECT_EQ(
      error([](auto& p) { p.actions[0].erase(p.actions[0].begin() + 1); }),
      "transfers: rank 0: expected send F0.0 to rank 1, found no such "
      "action");
  EXPECT_EQ(error([](auto& p) { p.actions[0][1].peer = 0; }),
            "transfers: rank 0, action 2 (send F0.0 to rank 0): expected "
            "transfers that the schedule needs, each once");
  EXPECT_EQ(error([](auto& p) {
              std::swap(p.actions[1][1], p.actions[1][2]);
              std::swap(p.actions[1][0], p.actions[1][1]);
            }),
            "transfers: rank 1, action 1 (receive F0.1 from rank 0): expected "
            "the order in which the values are sent, here F0.0");
  EXPECT_EQ(
      error([](auto& p) {
        // Send the first gradient before the second activation.
        std::rotate(p.actions[0].begin() + 2, p.actions[0].begin() + 4,
                    p.actions[0].begin() + 5);
      }),
      "transfers: rank 0, action 3 (receive I1.0 from rank 1): expected "
      "the value to be sent, found that rank 1 waits at action 3 (receive "
      "F0.1 from rank 0) before it sends it");
}

// --- Independent criterion: positions by name, and a search for cycles. ---

using Actions = std::vector<std::vector<Action>>;

bool HasCycle(const std::vector<std::vector<int>>& after) {
  std::vector<int> waits(after.size());
  for (const std::vector<int>& nodes : after)
    for (int node : nodes) ++waits[node];
  std::vector<int> ready;
  for (size_t i = 0; i < after.size(); ++i)
    if (waits[i] == 0) ready.push_back(static_cast<int>(i));
  size_t done = 0;
  for (; !ready.empty(); ++done) {
    const int node = ready.back();
    ready.pop_back();
    for (int next : after[node])
      if (--waits[next] == 0) ready.push_back(next);
  }
  return done < after.size();
}

// The n-th send between two ranks matches the n-th receive.
bool ChannelsAreSound(const Actions& actions) {
  std::vector<std::vector<int>> after;
  std::map<std::pair<int, int>, std::vector<std::pair<std::string, int>>> sent,
      received;
  for (int rank = 0; rank < static_cast<int>(actions.size()); ++rank) {
    for (size_t i = 0; i < actions[rank].size(); ++i) {
      const Action& action = actions[rank][i];
      const int node = static_cast<int>(after.size());
      after.emplace_back();
      if (i > 0) after[node - 1].push_back(node);
      if (action.kind == Kind::kSend)
        sent[{rank, action.peer}].push_back({ToString(action.cell), node});
      if (action.kind == Kind::kReceive)
        received[{action.peer, rank}].push_back({ToString(action.cell), node});
    }
  }
  if (sent.size() != received.size()) return false;
  for (const auto& [pair, sends] : sent) {
    const auto& receives = received[pair];
    if (sends.size() != receives.size()) return false;
    for (size_t i = 0; i < sends.size(); ++i) {
      if (sends[i].first != receives[i].first) return false;
      after[sends[i].second].push_back(receives[i].second);
    }
  }
  return !HasCycle(after);
}

bool IsLegal(const Schedule& schedule, const Actions& actions) {
  std::vector<std::map<std::string, int>> position(schedule.ranks());
  for (int rank = 0; rank < schedule.ranks(); ++rank)
    for (const std::string& text : Texts(actions[rank]))
      position[rank].emplace(text, position[rank].size());
  auto find = [&](int rank, const std::string& text) {
    const auto it = position[rank].find(text);
    return it == position[rank].end() ? -1 : it->second;
  };
  size_t transfers = 0;
  auto crosses = [&](const std::string& value, const std::string& made,
                     int maker, const std::string& used, int user) {
    ++transfers;
    const std::string from = std::to_string(maker), to = std::to_string(user);
    const int send = find(maker, "send " + value + " to rank " + to);
    const int receive = find(user, "receive " + value + " from rank " + from);
    return send > find(maker, made) && receive >= 0 &&
           receive < find(user, used);
  };
  auto name = [&](const std::string& letters, int stage, int k) {
    const std::string at = std::to_string(stage) + "." + std::to_string(k);
    for (char letter : letters)
      if (find(schedule.rank_of_stage[stage], letter + at) >= 0)
        return letter + at;
    return std::string();
  };
  for (int s = 0; s + 1 < schedule.stages; ++s) {
    const int a = schedule.rank_of_stage[s], b = schedule.rank_of_stage[s + 1];
    for (int k = 0; a != b && k < schedule.microbatches; ++k) {
      const std::string at = std::to_string(k);
      const std::string up = "I" + std::to_string(s + 1) + "." + at;
      if (!crosses(name("F", s, k), name("F", s, k), a, name("F", s + 1, k),
                   b) ||
          !crosses(up, name("BI", s + 1, k), b, name("BI", s, k), a))
        return false;
    }
  }
  size_t found = 0;
  for (int rank = 0; rank < schedule.ranks(); ++rank) {
    std::vector<Cell> cells;
    for (const Action& action : actions[rank]) {
      if (action.kind == Kind::kCompute) cells.push_back(action.cell);
      found += action.kind == Kind::kSend;
    }
    if (cells != schedule.cells[rank]) return false;
  }
  return found == transfers && ChannelsAreSound(actions);
}

class TransferMutationTest : public testing::Test {
 protected:
  int Below(size_t n) {
    return std::uniform_int_distribution<int>(0,
                                              static_cast<int>(n) - 1)(random_);
  }

  Schedule Any() {
    const int ranks = 2 + Below(3), microbatches = 2 + Below(4);
    switch (Below(4)) {
      case 0:
        return GPipe(ranks, microbatches);
      case 1:
        return Interleaved(ranks, 1 + Below(2), microbatches);
      case 2:
        return ZeroBubbleH1(ranks, microbatches);
      default:
        return ZeroBubbleV(ranks, microbatches);
    }
  }

  // Moves, repeats, drops or swaps a transfer, or gives it to another rank.
  void Mutate(const Schedule& schedule, Actions& program) {
    std::vector<Action>& actions = program[Below(program.size())];
    std::vector<int> transfers;
    for (size_t i = 0; i < actions.size(); ++i)
      if (actions[i].kind != Kind::kCompute)
        transfers.push_back(static_cast<int>(i));
    const int at = transfers[Below(transfers.size())];
    const Action action = actions[at];
    switch (Below(6)) {
      case 0:
        actions.erase(actions.begin() + at);
        actions.insert(actions.begin() + Below(actions.size() + 1), action);
        break;
      case 1:
        actions.insert(actions.begin() + Below(actions.size() + 1), action);
        break;
      case 2:
        actions.erase(actions.begin() + at);
        break;
      case 3:
        std::swap(actions[at], actions[transfers[Below(transfers.size())]]);
        break;
      case 4:
        actions[at].cell.microbatch = Below(schedule.microbatches);
        actions[at].peer = Below(schedule.ranks());
        break;
      default:
        actions[at].kind = static_cast<Kind>(Below(3));
    }
  }

  std::mt19937 random_{23};
};

TEST_F(TransferMutationTest, EveryBrokenProgramIsRefusedWithRankAndCell) {
  int refused = 0;
  std::map<std::string, int> kinds;
  while (refused < 1500) {
    const Schedule schedule = Any();
    TransferProgram program = PlaceTransfers(schedule);
    ASSERT_TRUE(IsLegal(schedule, program.actions));
    ASSERT_TRUE(CheckTransfers(schedule, program).ok());
    Mutate(schedule, program.actions);
    const absl::Status status = CheckTransfers(schedule, program);
    ASSERT_EQ(status.ok(), IsLegal(schedule, program.actions)) << status;
    if (status.ok()) continue;
    ++refused;
    const std::string message(status.message());
    EXPECT_THAT(message, ContainsRegex("rank [0-9]+.*[FBIW][0-9]+\\.[0-9]+"));
    for (const char* kind :
         {"a receive of", "after the cell that makes", "each once",
          "no such action", "values are sent", "the value to be sent"})
      if (message.find(kind) != std::string::npos) ++kinds[kind];
  }
  EXPECT_EQ(kinds.size(), 6u) << "every check has refused something";
  for (const auto& [kind, count] : kinds) EXPECT_GE(count, 5) << kind;
}

TEST_F(TransferMutationTest, LegalReorderingsAreAccepted) {
  int accepted = 0, illegal = 0;
  while (accepted < 200) {
    const Schedule schedule = Any();
    TransferProgram program = PlaceTransfers(schedule);
    for (int swaps = 1 + Below(6); swaps > 0; --swaps) {
      std::vector<Action>& actions = program.actions[Below(schedule.ranks())];
      const int at = Below(actions.size() - 1);
      std::swap(actions[at], actions[at + 1]);
      const absl::Status status = CheckTransfers(schedule, program);
      if (IsLegal(schedule, program.actions)) {
        EXPECT_TRUE(status.ok()) << status;
        ++accepted;
      } else {
        EXPECT_FALSE(status.ok());
        ++illegal;
        std::swap(actions[at], actions[at + 1]);
      }
    }
  }
  EXPECT_GE(illegal, 100);
}

}  // namespace
}  // namespace partita::core
