// Runs a schedule under a virtual clock.
#include "compiler/core/timetable.h"

#include <algorithm>

namespace partita::core {
namespace {

double Duration(const Costs& costs, const Cell& cell) {
  const StageCost cost =
      costs.stages.empty() ? StageCost() : costs.stages[cell.stage];
  switch (cell.work) {
    case Work::kForward:
      return cost.forward;
    case Work::kBackward:
      return cost.backward;
    case Work::kInputGrad:
      return cost.input_grad;
    case Work::kWeightGrad:
      return cost.weight_grad;
  }
  return 0;
}

// Starts every cell as early as its rank and its needs allow.
void RunClock(const Schedule& run, const Costs& costs, Timetable& table) {
  const CellMap map(run);
  table.ranks.resize(run.ranks());
  for (int rank = 0; rank < run.ranks(); ++rank)
    table.ranks[rank].reserve(run.cells[rank].size());
  // Starts the rank's next cell if all its needs are computed.
  auto start_next = [&](int rank) {
    std::vector<TimedCell>& done = table.ranks[rank];
    if (done.size() == run.cells[rank].size()) return false;
    const Cell& cell = run.cells[rank][done.size()];
    double start = done.empty() ? 0 : done.back().end;
    TimedTransfer arrivals[2];
    int count = 0;
    for (const Cell& need : Needs(cell, run.stages)) {
      const CellMap::Place place = map.Find(need);
      const std::vector<TimedCell>& others = table.ranks[place.rank];
      if (place.position >= static_cast<int>(others.size())) return false;
      double ready = others[place.position].end;
      if (place.rank != rank) {
        arrivals[count++] = {need, place.rank, rank, ready,
                             ready + costs.transfer};
        ready += costs.transfer;
      }
      start = std::max(start, ready);
    }
    table.transfers.insert(table.transfers.end(), arrivals, arrivals + count);
    done.push_back({cell, start, start + Duration(costs, cell)});
    table.end = std::max(table.end, done.back().end);
    return true;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (int rank = 0; rank < run.ranks(); ++rank)
      while (start_next(rank)) moved = true;
  }
}

void CountInFlight(bool trains, Timetable& table) {
  table.in_flight.resize(table.rank_of_stage.size());
  if (!trains) return;
  for (const std::vector<TimedCell>& cells : table.ranks) {
    for (const TimedCell& timed : cells) {
      std::vector<InFlightChange>& changes = table.in_flight[timed.cell.stage];
      const int count = changes.empty() ? 0 : changes.back().count;
      // Saved activations live from the end of the forward to the end of the
      // weight gradient.
      if (timed.cell.work == Work::kForward)
        changes.push_back({timed.end, count + 1});
      else if (timed.cell.work != Work::kInputGrad)
        changes.push_back({timed.end, count - 1});
    }
  }
}

double Busy(const Costs& costs, const std::vector<Cell>& cells) {
  double busy = 0;
  for (const Cell& cell : cells) busy += Duration(costs, cell);
  return busy;
}

}  // namespace

Timetable MakeTimetable(const Schedule& schedule, const Costs& costs) {
  Timetable table;
  table.rank_of_stage = schedule.rank_of_stage;
  // Without flushes, measure `ranks` steps from step `settled` on, before
  // forwards run out.
  const int ranks = schedule.ranks();
  const int settled = 2 * ranks;
  const int steps = settled + ranks + StepsAhead(schedule) + 1;
  const Schedule unrolled =
      schedule.flushes ? Schedule() : Unroll(schedule, steps);
  const Schedule& run = schedule.flushes ? schedule : unrolled;
  table.microbatches = run.microbatches;
  RunClock(run, costs, table);
  CountInFlight(schedule.trains, table);
  table.step = table.end;
  if (!schedule.flushes) {
    table.step = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      if (schedule.cells[rank].empty()) continue;
      auto start = [&](int step) {
        return table
            .ranks[rank][schedule.warm_up[rank].size() +
                         step * schedule.cells[rank].size()]
            .start;
      };
      table.step = std::max(table.step,
                            (start(settled + ranks) - start(settled)) / ranks);
    }
  }
  double idle = 0;
  for (const std::vector<Cell>& cells : schedule.cells) {
    const double bubble =
        table.step > 0 ? 1 - Busy(costs, cells) / table.step : 0;
    table.rank_bubble.push_back(std::max(0.0, bubble));
    idle += table.rank_bubble.back();
  }
  table.bubble = idle / ranks;
  return table;
}

}  // namespace partita::core
