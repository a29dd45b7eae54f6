// Compares the cells of a period stage by stage, numbers and times them.
#include "compiler/pipeline/delayed_step.h"

#include <algorithm>
#include <array>
#include <optional>

#include "absl/status/status.h"

namespace partita::pipeline {
namespace {

using core::Cell;
using core::Schedule;
using core::Work;

int floorDiv(int a, int b) { return a / b - (a % b < 0 ? 1 : 0); }

// Returns the first microbatch of a stage's forwards in a period. Gradients
// start at microbatch 0.
int firstForward(const Schedule& schedule, int stage) {
  return schedule.stages - 1 - stage;
}

int firstOf(const Schedule& schedule, const Cell& cell) {
  return cell.work == Work::kForward ? firstForward(schedule, cell.stage) : 0;
}

std::string rangeFrom(int first, int count) {
  return std::to_string(first) + " to " + std::to_string(first + count - 1);
}

// Returns the version that a cell has under weights=newest or weights=previous.
int versionOf(const Schedule& schedule, const Cell& cell, bool newest) {
  const int count = schedule.microbatches;
  return newest ? floorDiv(cell.microbatch - firstForward(schedule, cell.stage),
                           count)
                : floorDiv(cell.microbatch, count) - 1;
}

absl::Status refuse(const Cell& cell, const std::string& expected) {
  return absl::InvalidArgumentError(
      "without a flush expected " + expected + ", found " +
      core::ToString(cell) +
      " in the period; cells may be in any order and on any rank, and I and W "
      "may replace B, but the work must be the same");
}

bool computes(const Cell& cell, const Cell& value) {
  return cell.stage == value.stage && cell.microbatch == value.microbatch &&
         (cell.work == value.work ||
          (cell.work == Work::kBackward && value.work != Work::kForward));
}

}  // namespace

absl::StatusOr<std::string> delayedWeights(const Schedule& schedule) {
  std::array<std::optional<Cell>, 2> other;  // by `newest`
  for (const std::vector<Cell>& cells : schedule.cells)
    for (const Cell& cell : cells) {
      const int first = firstOf(schedule, cell);
      // A valid period has each of a step's microbatches once.
      if (cell.microbatch < first ||
          cell.microbatch >= first + schedule.microbatches)
        return refuse(
            cell,
            "a stage to be as many microbatches ahead of its gradients as "
            "there are stages behind it, here stage " +
                std::to_string(cell.stage) + " to compute forwards of " +
                rangeFrom(firstForward(schedule, cell.stage),
                          schedule.microbatches) +
                " and gradients of " + rangeFrom(0, schedule.microbatches));
      for (bool newest : {false, true})
        if (!other[newest] && cell.version != versionOf(schedule, cell, newest))
          other[newest] = cell;
    }
  for (bool newest : {true, false})
    if (!other[newest]) return std::string(newest ? "newest" : "previous");
  Cell async = *other[true], previous = async;
  async.version = versionOf(schedule, async, true);
  previous.version = versionOf(schedule, async, false);
  return refuse(*other[true],
                "the versions of weights that async has everywhere (here " +
                    core::ToString(async) + "), or those of async-2bw (" +
                    core::ToString(previous) + ")");
}

Schedule delayedStep(const Schedule& schedule) {
  Schedule step = schedule;
  step.flushes = true;
  step.warm_up.clear();
  const int count = schedule.microbatches;
  const int late = (schedule.stages - 1) % count;
  for (std::vector<Cell>& cells : step.cells)
    for (Cell& cell : cells) {
      cell.microbatch = (cell.microbatch + count - late) % count;
      cell.version = 0;
    }
  return step;
}

std::vector<std::vector<core::TimedCell>> delayedClock(
    const Schedule& schedule) {
  const Schedule step = delayedStep(schedule);
  std::vector<std::vector<core::TimedCell>> clock(schedule.ranks());
  // Returns the end of the cell that computes `value`; nullopt if it has not
  // run yet; 0 if it belongs to another period.
  const auto end = [&](const Cell& value) -> std::optional<double> {
    const int rank = schedule.rank_of_stage[value.stage];
    for (size_t i = 0; i < schedule.cells[rank].size(); ++i)
      if (computes(schedule.cells[rank][i], value)) {
        if (i >= clock[rank].size()) return std::nullopt;
        return clock[rank][i].end;
      }
    return 0;
  };
  const auto run = [&](int rank) {
    const size_t next = clock[rank].size();
    if (next == schedule.cells[rank].size()) return false;
    const Cell& cell = schedule.cells[rank][next];
    double start = next == 0 ? 0 : clock[rank].back().end;
    for (const Cell& needed : core::Needs(cell, schedule.stages)) {
      const std::optional<double> ready = end(needed);
      if (!ready) return false;
      start = std::max(start, *ready);
    }
    const double length = cell.work == Work::kBackward ? 2 : 1;
    clock[rank].push_back({step.cells[rank][next], start, start + length});
    return true;
  };
  // Terminates: cells of a valid schedule do not wait for each other.
  for (bool runs = true; runs;) {
    runs = false;
    for (int rank = 0; rank < schedule.ranks(); ++rank)
      while (run(rank)) runs = true;
  }
  return clock;
}

}  // namespace partita::pipeline
