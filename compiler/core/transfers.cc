// Places sends and receives.
#include "compiler/core/transfers.h"

#include <deque>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace partita::core {
namespace {

using Kind = Action::Kind;

// Returns the value that `cell` computes for another rank, and that rank. Stage
// -1: none.
Action SendOf(const Schedule& schedule, const Cell& cell) {
  Action send{Kind::kSend, {cell.work, -1, cell.microbatch}, -1};
  int reader = -1;
  if (cell.work == Work::kForward) reader = cell.stage + 1;
  if (cell.work == Work::kBackward || cell.work == Work::kInputGrad) {
    send.cell.work = Work::kInputGrad;
    reader = cell.stage - 1;
  }
  if (reader < 0 || reader >= schedule.stages) return send;
  send.peer = schedule.rank_of_stage[reader];
  if (send.peer != schedule.rank_of_stage[cell.stage])
    send.cell.stage = cell.stage;
  return send;
}

// Values that a rank receives from each other rank, in sending order.
using Channels = std::map<std::pair<int, int>, std::deque<Cell>>;

Channels SendsOf(const Schedule& schedule,
                 const std::vector<std::vector<Cell>>& cells) {
  Channels channels;
  for (int rank = 0; rank < schedule.ranks(); ++rank) {
    for (const Cell& cell : cells[rank]) {
      const Action send = SendOf(schedule, cell);
      if (send.cell.stage >= 0)
        channels[{rank, send.peer}].push_back(send.cell);
    }
  }
  return channels;
}

// Appends the receives before `cell`. With `in_order`, also receives values
// that were sent before its needs, and removes them from `channels`.
void AppendReceives(const Schedule& schedule, const Cell& cell, bool in_order,
                    Channels& channels,
                    std::set<std::tuple<int, int, int>>& has,
                    std::vector<Action>& actions) {
  const int rank = schedule.rank_of_stage[cell.stage];
  for (const Cell& need : Needs(cell, schedule.stages)) {
    const int from = schedule.rank_of_stage[need.stage];
    if (from == rank) continue;
    if (!in_order) {
      actions.push_back({Kind::kReceive, need, from});
      continue;
    }
    std::deque<Cell>& channel = channels[{from, rank}];
    auto key = [](const Cell& value) {
      return std::make_tuple(static_cast<int>(value.work), value.stage,
                             value.microbatch);
    };
    while (has.count(key(need)) == 0) {
      actions.push_back({Kind::kReceive, channel.front(), from});
      has.insert(key(channel.front()));
      channel.pop_front();
    }
  }
}

std::vector<std::vector<Action>> Place(
    const Schedule& schedule, const std::vector<std::vector<Cell>>& cells) {
  Channels channels = SendsOf(schedule, cells);
  std::vector<std::vector<Action>> actions(schedule.ranks());
  for (int rank = 0; rank < schedule.ranks(); ++rank) {
    std::set<std::tuple<int, int, int>> has;
    for (const Cell& cell : cells[rank]) {
      AppendReceives(schedule, cell, schedule.flushes, channels, has,
                     actions[rank]);
      actions[rank].push_back({Kind::kCompute, cell, -1});
      const Action send = SendOf(schedule, cell);
      if (send.cell.stage >= 0) actions[rank].push_back(send);
    }
  }
  return actions;
}

}  // namespace

bool operator==(const Action& a, const Action& b) {
  return a.kind == b.kind && a.cell == b.cell && a.peer == b.peer;
}

std::string ToString(const Action& action) {
  const std::string cell = ToString(action.cell);
  const std::string peer = "rank " + std::to_string(action.peer);
  if (action.kind == Kind::kSend) return "send " + cell + " to " + peer;
  if (action.kind == Kind::kReceive) return "receive " + cell + " from " + peer;
  return cell;
}

TransferProgram PlaceTransfers(const Schedule& schedule) {
  TransferProgram program;
  if (!schedule.flushes) program.warm_up = Place(schedule, schedule.warm_up);
  program.actions = Place(schedule, schedule.cells);
  return program;
}

}  // namespace partita::core
