// Checks a transfer program independently of how it was made.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "compiler/core/transfers.h"

namespace partita::core {
namespace {

using Kind = Action::Kind;
using Actions = std::vector<std::vector<Action>>;  // [rank]
using Value = std::tuple<int, int, int>;           // work, stage, microbatch

Value ValueOf(const Cell& cell) {
  const Work work = cell.work == Work::kBackward ? Work::kInputGrad : cell.work;
  return {static_cast<int>(work), cell.stage, cell.microbatch};
}

absl::Status Refuse(int rank, const std::string& what) {
  return absl::InvalidArgumentError("transfers: rank " + std::to_string(rank) +
                                    what);
}

absl::Status Refuse(const Actions& actions, int rank, size_t i,
                    const std::string& what) {
  return Refuse(rank, ", action " + std::to_string(i + 1) + " (" +
                          ToString(actions[rank][i]) + "): " + what);
}

// Returns the first steps of a program, in the manner of Unroll.
Actions UnrollActions(const Schedule& schedule, const TransferProgram& program,
                      int microbatches) {
  Actions run(program.actions.size());
  for (size_t rank = 0; rank < run.size(); ++rank) {
    auto append = [&](const std::vector<Action>& part, int step) {
      for (Action action : part) {
        action.cell.microbatch += step * schedule.microbatches;
        if (action.kind == Kind::kCompute)
          action.cell.version = std::max(0, action.cell.version + step);
        if (action.cell.microbatch < microbatches) run[rank].push_back(action);
      }
    };
    append(program.warm_up[rank], 0);
    for (int step = 0; step < microbatches / schedule.microbatches; ++step)
      append(program.actions[rank], step);
  }
  return run;
}

absl::Status CheckComputes(const Schedule& run, const Actions& actions) {
  for (int rank = 0; rank < run.ranks(); ++rank) {
    size_t next = 0;
    const std::vector<Cell>& cells = run.cells[rank];
    for (size_t i = 0; i < actions[rank].size(); ++i) {
      const Action& action = actions[rank][i];
      if (action.kind != Kind::kCompute) continue;
      if (next == cells.size() || !(cells[next] == action.cell))
        return Refuse(actions, rank, i,
                      "expected the schedule's cells in their order, here " +
                          (next == cells.size() ? std::string("none")
                                                : ToString(cells[next])));
      ++next;
    }
    if (next < cells.size())
      return Refuse(rank, ": expected the schedule's cells in their order, " +
                              ToString(cells[next]) + " next, found the end");
  }
  return absl::OkStatus();
}

// Checks that sends come after the value is computed, receives before it is
// needed, each once, and that no transfer is superfluous.
absl::Status CheckRank(const Schedule& run, const Actions& actions, int rank) {
  std::set<Value> wanted;                  // from other ranks
  std::map<Value, std::set<int>> readers;  // of this rank's values
  const auto is_own = [&](int stage) {
    return stage >= 0 && stage < run.stages && run.rank_of_stage[stage] == rank;
  };
  for (int stage = 0; stage < run.stages; ++stage) {
    // Cells exchange values with their own stage and its neighbours only.
    if (!is_own(stage - 1) && !is_own(stage) && !is_own(stage + 1)) continue;
    for (int microbatch = 0; microbatch < run.microbatches; ++microbatch)
      for (Work work : {Work::kForward, Work::kInputGrad}) {
        if (work == Work::kInputGrad && !run.trains) continue;
        for (const Cell& need : Needs({work, stage, microbatch}, run.stages)) {
          const int from = run.rank_of_stage[need.stage];
          const int to = run.rank_of_stage[stage];
          if (from == to) continue;
          if (to == rank) wanted.insert(ValueOf(need));
          if (from == rank) readers[ValueOf(need)].insert(to);
        }
      }
  }
  std::set<Value> made, received;
  for (size_t i = 0; i < actions[rank].size(); ++i) {
    const Action& action = actions[rank][i];
    const Value value = ValueOf(action.cell);
    if (action.kind == Kind::kCompute) {
      for (const Cell& need : Needs(action.cell, run.stages))
        if (wanted.count(ValueOf(need)) > 0 &&
            received.count(ValueOf(need)) == 0)
          return Refuse(actions, rank, i,
                        "expected a receive of " + ToString(need) +
                            " before it, found none");
      made.insert(value);
      continue;
    }
    const bool send = action.kind == Kind::kSend;
    if (send && made.count(value) == 0)
      return Refuse(actions, rank, i,
                    "expected it after the cell that makes the value, found " +
                        std::string("it before, or no such cell"));
    const bool known =
        send ? readers[value].erase(action.peer) > 0
             : wanted.count(value) > 0 && received.insert(value).second &&
                   run.rank_of_stage[action.cell.stage] == action.peer;
    if (!known)
      return Refuse(actions, rank, i,
                    "expected transfers that the schedule needs, each once");
  }
  for (const auto& [value, ranks] : readers)
    if (!ranks.empty())
      return Refuse(
          rank, ": expected " +
                    ToString(Action{Kind::kSend,
                                    {static_cast<Work>(std::get<0>(value)),
                                     std::get<1>(value), std::get<2>(value)},
                                    *ranks.begin()}) +
                    ", found no such action");
  return absl::OkStatus();
}

// Checks that each pair of ranks sends and receives in one order.
absl::Status CheckPairs(const Actions& actions) {
  std::map<std::pair<int, int>, std::vector<Cell>> sent;
  const int ranks = static_cast<int>(actions.size());
  for (int rank = 0; rank < ranks; ++rank)
    for (const Action& action : actions[rank])
      if (action.kind == Kind::kSend)
        sent[{rank, action.peer}].push_back(action.cell);
  std::map<std::pair<int, int>, size_t> next;
  for (int rank = 0; rank < ranks; ++rank) {
    for (size_t i = 0; i < actions[rank].size(); ++i) {
      const Action& action = actions[rank][i];
      if (action.kind != Kind::kReceive) continue;
      const std::pair<int, int> pair = {action.peer, rank};
      const size_t at = next[pair]++;
      if (at < sent[pair].size() && sent[pair][at] == action.cell) continue;
      return Refuse(actions, rank, i,
                    "expected the order in which the values are sent, here " +
                        (at < sent[pair].size() ? ToString(sent[pair][at])
                                                : std::string("none")));
    }
  }
  return absl::OkStatus();
}

// Runs the ranks. The orders are equal by now, so counting sent values is
// enough.
absl::Status CheckProgress(const Actions& actions) {
  const int ranks = static_cast<int>(actions.size());
  std::vector<size_t> next(ranks);
  std::map<std::pair<int, int>, int> under_way;
  for (bool moved = true; moved;) {
    moved = false;
    for (int rank = 0; rank < ranks; ++rank) {
      for (; next[rank] < actions[rank].size(); ++next[rank], moved = true) {
        const Action& action = actions[rank][next[rank]];
        if (action.kind == Kind::kSend) ++under_way[{rank, action.peer}];
        if (action.kind == Kind::kReceive &&
            under_way[{action.peer, rank}]-- == 0) {
          under_way[{action.peer, rank}] = 0;
          break;
        }
      }
    }
  }
  for (int rank = 0; rank < ranks; ++rank) {
    if (next[rank] == actions[rank].size()) continue;
    const int peer = actions[rank][next[rank]].peer;
    return Refuse(actions, rank, next[rank],
                  "expected the value to be sent, found that rank " +
                      std::to_string(peer) + " waits at action " +
                      std::to_string(next[peer] + 1) + " (" +
                      ToString(actions[peer][next[peer]]) +
                      ") before it sends it");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckTransfers(const Schedule& schedule,
                            const TransferProgram& program) {
  const size_t ranks = schedule.cells.size();
  if (program.actions.size() != ranks ||
      program.warm_up.size() != (schedule.flushes ? 0 : ranks))
    return absl::InvalidArgumentError(
        "transfers: expected actions of " + std::to_string(ranks) +
        " ranks, found " + std::to_string(program.actions.size()) +
        (schedule.flushes ? " (and no warm-up)" : " (and as many warm-ups)"));
  const Schedule run = ShortRun(schedule);
  const Actions actions =
      schedule.flushes ? program.actions
                       : UnrollActions(schedule, program, run.microbatches);
  if (absl::Status status = CheckComputes(run, actions); !status.ok())
    return status;
  for (int rank = 0; rank < run.ranks(); ++rank)
    if (absl::Status status = CheckRank(run, actions, rank); !status.ok())
      return status;
  if (absl::Status status = CheckPairs(actions); !status.ok()) return status;
  return CheckProgress(actions);
}

}  // namespace partita::core
