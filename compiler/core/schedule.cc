// Cells and their dependencies, runs of several steps, and their peak memory.
#include "compiler/core/schedule.h"

#include <algorithm>
#include <map>

namespace partita::core {

bool operator==(const Cell& a, const Cell& b) {
  return a.work == b.work && a.stage == b.stage &&
         a.microbatch == b.microbatch && a.version == b.version;
}

std::string ToString(const Cell& cell) {
  std::string text(1, "FBIW"[static_cast<int>(cell.work)]);
  text += std::to_string(cell.stage) + "." + std::to_string(cell.microbatch);
  if (cell.version != 0) text += "@" + std::to_string(cell.version);
  return text;
}

NeededCells Needs(const Cell& cell, int stages) {
  const int stage = cell.stage;
  const int microbatch = cell.microbatch;
  NeededCells needs;
  if (cell.work == Work::kForward) {
    if (stage > 0) needs.push_back({Work::kForward, stage - 1, microbatch});
  } else if (cell.work == Work::kWeightGrad) {
    needs.push_back({Work::kInputGrad, stage, microbatch});
  } else {
    needs.push_back({Work::kForward, stage, microbatch});
    if (stage + 1 < stages)
      needs.push_back({Work::kInputGrad, stage + 1, microbatch});
  }
  return needs;
}

Schedule Unroll(const Schedule& schedule, int steps) {
  Schedule run = schedule;
  run.flushes = true;
  run.microbatches = steps * schedule.microbatches;
  run.warm_up.clear();
  for (int rank = 0; rank < schedule.ranks(); ++rank) {
    std::vector<Cell>& cells = run.cells[rank];
    cells.clear();
    auto append = [&](const std::vector<Cell>& part, int step) {
      for (Cell cell : part) {
        cell.microbatch += step * schedule.microbatches;
        cell.version = std::max(0, cell.version + step);
        if (cell.microbatch < run.microbatches) cells.push_back(cell);
      }
    };
    if (!schedule.warm_up.empty()) append(schedule.warm_up[rank], 0);
    for (int step = 0; step < steps; ++step) append(schedule.cells[rank], step);
  }
  return run;
}

Schedule ForwardOnly(Schedule schedule) {
  schedule.trains = false;
  for (std::vector<Cell>& cells : schedule.cells)
    cells.erase(std::remove_if(cells.begin(), cells.end(),
                               [](const Cell& cell) {
                                 return cell.work != Work::kForward;
                               }),
                cells.end());
  return schedule;
}

int StepsAhead(const Schedule& schedule) {
  int ahead = 0;
  for (const auto* part : {&schedule.warm_up, &schedule.cells})
    for (const std::vector<Cell>& cells : *part)
      for (const Cell& cell : cells)
        ahead = std::max(ahead, cell.microbatch / schedule.microbatches);
  return ahead;
}

Schedule ShortRun(const Schedule& schedule) {
  if (schedule.flushes) return schedule;
  return Unroll(schedule, 2 * StepsAhead(schedule) + 3);
}

std::vector<int> PeakInFlight(const Schedule& schedule) {
  const Schedule run = ShortRun(schedule);
  std::vector<int> now(run.stages), peak(run.stages);
  if (!schedule.trains) return peak;
  for (const std::vector<Cell>& cells : run.cells) {
    for (const Cell& cell : cells) {
      int& count = now[cell.stage];
      if (cell.work == Work::kForward)
        peak[cell.stage] = std::max(peak[cell.stage], ++count);
      else if (cell.work != Work::kInputGrad)
        --count;
    }
  }
  return peak;
}

std::vector<int> PeakVersions(const Schedule& schedule) {
  std::vector<int> peak(schedule.stages, 1);
  if (schedule.flushes) return peak;
  const Schedule run = ShortRun(schedule);
  std::vector<std::map<int, int>> users(run.stages);  // in flight, per version
  std::vector<int> finished(run.stages);
  for (const std::vector<Cell>& cells : run.cells) {
    for (const Cell& cell : cells) {
      std::map<int, int>& used = users[cell.stage];
      if (cell.work == Work::kForward) {
        ++used[cell.version];
      } else if (cell.work != Work::kInputGrad) {
        if (--used[cell.version] == 0) used.erase(cell.version);
        ++finished[cell.stage];
      }
      // Count the newest version even if it is unused so far, and all versions
      // between it and the oldest one in use.
      const int newest = finished[cell.stage] / schedule.microbatches;
      const int oldest = used.empty() ? newest : used.begin()->first;
      peak[cell.stage] = std::max(peak[cell.stage], newest - oldest + 1);
    }
  }
  return peak;
}

CellMap::CellMap(int stages, int microbatches)
    : stages_(stages),
      microbatches_(microbatches),
      places_(3 * static_cast<size_t>(stages) * microbatches) {}

CellMap::CellMap(const Schedule& schedule)
    : CellMap(schedule.stages, schedule.microbatches) {
  for (int rank = 0; rank < schedule.ranks(); ++rank)
    for (size_t i = 0; i < schedule.cells[rank].size(); ++i)
      Add(schedule.cells[rank][i], {rank, static_cast<int>(i)});
}

int CellMap::Index(Work work, const Cell& cell) const {
  const int kind = work == Work::kForward     ? 0
                   : work == Work::kInputGrad ? 1
                                              : 2;
  return (kind * stages_ + cell.stage) * microbatches_ + cell.microbatch;
}

const CellMap::Place& CellMap::Find(const Cell& cell) const {
  const Work work = cell.work == Work::kBackward ? Work::kInputGrad : cell.work;
  return places_[Index(work, cell)];
}

CellMap::Place CellMap::Add(const Cell& cell, Place place) {
  const auto add = [&](Work work) -> Place {
    Place& known = places_[Index(work, cell)];
    if (known.found()) return known;
    known = place;
    return {};
  };
  if (cell.work != Work::kBackward) return add(cell.work);
  const Place other = add(Work::kInputGrad);
  return other.found() ? other : add(Work::kWeightGrad);
}

}  // namespace partita::core
