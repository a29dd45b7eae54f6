// Checks a schedule property by property, simplest first. Each check relies on
// the previous ones.
#include "compiler/core/check_schedule.h"

#include <optional>
#include <string>

namespace partita::core {
namespace {

using Place = CellMap::Place;

// Formats as "cell 3 (F1.0)".
std::string CellAt(const Schedule& schedule, Place place) {
  return "cell " + std::to_string(place.position + 1) + " (" +
         ToString(schedule.cells[place.rank][place.position]) + ")";
}

absl::Status Refuse(const Schedule& schedule, Place place,
                    const std::string& what) {
  return absl::InvalidArgumentError("schedule: rank " +
                                    std::to_string(place.rank) + ", " +
                                    CellAt(schedule, place) + ": " + what);
}

absl::Status CheckShape(const Schedule& schedule) {
  auto refuse = [](const std::string& what) {
    return absl::InvalidArgumentError("schedule: " + what);
  };
  if (schedule.stages < 1 || schedule.microbatches < 1 || schedule.ranks() < 1)
    return refuse("expected at least one rank, stage and microbatch, found " +
                  std::to_string(schedule.ranks()) + ", " +
                  std::to_string(schedule.stages) + " and " +
                  std::to_string(schedule.microbatches));
  if (static_cast<int>(schedule.rank_of_stage.size()) != schedule.stages)
    return refuse("expected a rank for each of " +
                  std::to_string(schedule.stages) + " stages, found " +
                  std::to_string(schedule.rank_of_stage.size()));
  for (int stage = 0; stage < schedule.stages; ++stage) {
    const int rank = schedule.rank_of_stage[stage];
    if (rank < 0 || rank >= schedule.ranks())
      return refuse("stage " + std::to_string(stage) +
                    ": expected a rank from 0 to " +
                    std::to_string(schedule.ranks() - 1) + ", found " +
                    std::to_string(rank));
  }
  if (!schedule.trains && !schedule.flushes)
    return refuse("expected a schedule that trains, as it does not flush");
  const size_t warm_ups = schedule.flushes ? 0 : schedule.cells.size();
  if (schedule.warm_up.size() != warm_ups)
    return refuse("expected " + std::to_string(warm_ups) +
                  " ranks with a warm-up, found " +
                  std::to_string(schedule.warm_up.size()));
  return absl::OkStatus();
}

// Checks stages, microbatches and versions of single cells.
absl::Status CheckCells(const Schedule& schedule) {
  Schedule shown = schedule;  // so that positions count the warm-up
  // Running further ahead than the round trip through the pipeline has no
  // benefit, and would make ShortRun very long.
  const int ahead = schedule.flushes ? 0 : 2 * schedule.stages;
  const int last = schedule.microbatches - 1 + ahead;
  for (int rank = 0; rank < schedule.ranks(); ++rank) {
    std::vector<Cell>& cells = shown.cells[rank];
    if (!schedule.flushes)
      cells.insert(cells.begin(), schedule.warm_up[rank].begin(),
                   schedule.warm_up[rank].end());
    for (size_t i = 0; i < cells.size(); ++i) {
      const Cell& cell = cells[i];
      const Place place{rank, static_cast<int>(i)};
      if (cell.stage < 0 || cell.stage >= schedule.stages)
        return Refuse(shown, place,
                      "expected a stage from 0 to " +
                          std::to_string(schedule.stages - 1));
      if (schedule.rank_of_stage[cell.stage] != rank)
        return Refuse(shown, place,
                      "expected cells of this rank's stages, found stage " +
                          std::to_string(cell.stage) + ", which is on rank " +
                          std::to_string(schedule.rank_of_stage[cell.stage]));
      if (!schedule.trains && cell.work != Work::kForward)
        return Refuse(shown, place,
                      "expected forwards alone, as nothing is trained");
      if (cell.microbatch < 0 || cell.microbatch > last)
        return Refuse(
            shown, place,
            "expected a microbatch from 0 to " + std::to_string(last));
      if (schedule.flushes && cell.version != 0)
        return Refuse(shown, place,
                      "expected version 0, as the schedule flushes every step");
    }
  }
  return absl::OkStatus();
}

// Checks that every cell occurs exactly once; fills `map`.
absl::Status CheckCounts(const Schedule& run, CellMap& map) {
  for (int rank = 0; rank < run.ranks(); ++rank) {
    for (size_t i = 0; i < run.cells[rank].size(); ++i) {
      const Place place{rank, static_cast<int>(i)};
      const Place known = map.Add(run.cells[rank][i], place);
      if (known.found())
        return Refuse(run, place,
                      "expected each result once, found the same in " +
                          CellAt(run, known));
    }
  }
  for (int stage = 0; stage < run.stages; ++stage) {
    for (int microbatch = 0; microbatch < run.microbatches; ++microbatch) {
      for (Work work : {Work::kForward, Work::kInputGrad, Work::kWeightGrad}) {
        const Cell cell{work, stage, microbatch};
        if (map.Find(cell).found()) continue;
        if (work != Work::kForward && !run.trains) continue;
        std::string expected = ToString(cell);
        if (work != Work::kForward)
          expected += " or " + ToString({Work::kBackward, stage, microbatch});
        return absl::InvalidArgumentError(
            "schedule: rank " + std::to_string(run.rank_of_stage[stage]) +
            ": expected a cell " + expected + ", found none");
      }
    }
  }
  return absl::OkStatus();
}

// Checks that needs on the same rank come earlier.
absl::Status CheckOwnOrder(const Schedule& run, const CellMap& map) {
  for (int rank = 0; rank < run.ranks(); ++rank) {
    for (size_t i = 0; i < run.cells[rank].size(); ++i) {
      const Place place{rank, static_cast<int>(i)};
      for (const Cell& need : Needs(run.cells[rank][i], run.stages)) {
        const Place found = map.Find(need);
        if (found.rank == rank && found.position > place.position)
          return Refuse(run, place,
                        "expected what it needs before it, found " +
                            CellAt(run, found) + " after it");
      }
    }
  }
  return absl::OkStatus();
}

// Returns the first need of the rank's next cell that is not computed yet.
std::optional<Place> WaitsFor(const Schedule& run, const CellMap& map,
                              const std::vector<int>& next, int rank) {
  for (const Cell& need : Needs(run.cells[rank][next[rank]], run.stages)) {
    const Place place = map.Find(need);
    if (place.position >= next[place.rank]) return place;
  }
  return std::nullopt;
}

// Runs the ranks until none can continue. If they do not reach the end, the
// error shows the cycle of ranks that wait for each other.
absl::Status CheckProgress(const Schedule& run, const CellMap& map) {
  std::vector<int> next(run.ranks());
  auto at_end = [&](int rank) {
    return next[rank] == static_cast<int>(run.cells[rank].size());
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (int rank = 0; rank < run.ranks(); ++rank)
      for (; !at_end(rank) && !WaitsFor(run, map, next, rank); ++next[rank])
        moved = true;
  }
  int rank = 0;
  while (rank < run.ranks() && at_end(rank)) ++rank;
  if (rank == run.ranks()) return absl::OkStatus();
  // A stuck rank waits for a stuck rank, so `ranks` hops lead onto the cycle.
  for (int i = 0; i < run.ranks(); ++i)
    rank = WaitsFor(run, map, next, rank)->rank;
  std::string circle;
  const int first = rank;
  do {
    const Place need = *WaitsFor(run, map, next, rank);
    if (rank != first)
      circle += "; rank " + std::to_string(rank) + " stands at " +
                CellAt(run, {rank, next[rank]}) + " and";
    circle += " waits for " + CellAt(run, need) + " of rank " +
              std::to_string(need.rank);
    rank = need.rank;
  } while (rank != first);
  return Refuse(run, {first, next[first]},
                "expected an order in which every rank goes on, found that "
                "ranks wait for each other: it" +
                    circle);
}

absl::Status CheckInFlight(const Schedule& run,
                           const std::vector<int>& limits) {
  if (limits.empty() || !run.trains) return absl::OkStatus();
  if (static_cast<int>(limits.size()) != run.stages)
    return absl::InvalidArgumentError(
        "schedule: expected a limit in flight for each of " +
        std::to_string(run.stages) + " stages, found " +
        std::to_string(limits.size()));
  std::vector<int> count(run.stages);
  for (int rank = 0; rank < run.ranks(); ++rank) {
    for (size_t i = 0; i < run.cells[rank].size(); ++i) {
      const Cell& cell = run.cells[rank][i];
      if (cell.work == Work::kForward) ++count[cell.stage];
      if (cell.work == Work::kBackward || cell.work == Work::kWeightGrad)
        --count[cell.stage];
      if (count[cell.stage] > limits[cell.stage])
        return Refuse(run, {rank, static_cast<int>(i)},
                      "expected at most " + std::to_string(limits[cell.stage]) +
                          " microbatches in flight on stage " +
                          std::to_string(cell.stage) + ", found " +
                          std::to_string(count[cell.stage]));
    }
  }
  return absl::OkStatus();
}

// `step_size`: microbatches between two updates.
absl::Status CheckVersions(const Schedule& run, const CellMap& map,
                           int step_size) {
  std::vector<int> finished(run.stages);
  for (int rank = 0; rank < run.ranks(); ++rank) {
    for (size_t i = 0; i < run.cells[rank].size(); ++i) {
      const Cell& cell = run.cells[rank][i];
      const Place place{rank, static_cast<int>(i)};
      const int updates = finished[cell.stage] / step_size;
      if (cell.version > updates)
        return Refuse(run, place,
                      "expected a version of the weights that exists, at "
                      "most " +
                          std::to_string(updates));
      const Place forward =
          map.Find({Work::kForward, cell.stage, cell.microbatch});
      const int used = run.cells[forward.rank][forward.position].version;
      if (used != cell.version)
        return Refuse(run, place,
                      "expected the version of the weights that its forward "
                      "used, " +
                          std::to_string(used));
      if (cell.work == Work::kBackward || cell.work == Work::kWeightGrad)
        ++finished[cell.stage];
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckSchedule(const Schedule& schedule,
                           const ScheduleLimits& limits) {
  if (absl::Status status = CheckShape(schedule); !status.ok()) return status;
  if (absl::Status status = CheckCells(schedule); !status.ok()) return status;
  const Schedule run = ShortRun(schedule);
  CellMap map(run.stages, run.microbatches);
  if (absl::Status status = CheckCounts(run, map); !status.ok()) return status;
  if (absl::Status status = CheckOwnOrder(run, map); !status.ok())
    return status;
  if (absl::Status status = CheckProgress(run, map); !status.ok())
    return status;
  if (absl::Status status = CheckInFlight(run, limits.in_flight); !status.ok())
    return status;
  if (schedule.flushes) return absl::OkStatus();
  return CheckVersions(run, map, schedule.microbatches);
}

}  // namespace partita::core
