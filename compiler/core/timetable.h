// A schedule under a virtual clock: when each cell runs, where the bubbles are.
#ifndef PARTITA_COMPILER_CORE_TIMETABLE_H_
#define PARTITA_COMPILER_CORE_TIMETABLE_H_

#include <string>
#include <vector>

#include "compiler/core/schedule.h"

namespace partita::core {

// Times are in any one unit. A kBackward is one cell, so it may cost less than
// its halves apart.
struct StageCost {
  double forward = 1;
  double backward = 2;
  double input_grad = 1;
  double weight_grad = 1;
};

struct Costs {
  std::vector<StageCost> stages;  // [stages]; empty: the default everywhere
  // From the end of a cell to when its value is on another rank. Transfers do
  // not keep ranks or each other waiting.
  double transfer = 0;
};

struct TimedCell {
  Cell cell;
  double start = 0;
  double end = 0;
};

struct TimedTransfer {
  Cell value;  // as in Needs
  int from = 0, to = 0;
  double start = 0;
  double end = 0;
};

// From `time` on, `count` microbatches are in flight (PeakInFlight's measure).
struct InFlightChange {
  double time = 0;
  int count = 0;
};

// Of one step; of a schedule that does not flush: of a run from its start, long
// enough to show the steady state.
struct Timetable {
  std::vector<int> rank_of_stage;
  int microbatches = 0;  // of all that is shown
  std::vector<std::vector<TimedCell>> ranks;
  std::vector<TimedTransfer> transfers;
  double end = 0;   // of all that is shown
  double step = 0;  // the length of a step; in the steady state
  // The part of a step in which the rank computes nothing, and the same of all
  // ranks together: 0 .. 1.
  std::vector<double> rank_bubble;
  double bubble = 0;
  std::vector<std::vector<InFlightChange>> in_flight;  // [stage], by time
};

// The schedule must pass CheckSchedule.
Timetable MakeTimetable(const Schedule& schedule, const Costs& costs = {});

// For a terminal: a row for each stage under its rank, columns are time, a cell
// is its letter, its microbatch if there is room, and dashes to its end; a dot
// is a bubble. Long tables continue below, in bands of at most `width` columns
// (60 or more). Ends in a line for each rank.
std::string DrawText(const Timetable& timetable, int width = 100);

// The same as a self-contained SVG document, with transfers.
std::string DrawSvg(const Timetable& timetable);

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_TIMETABLE_H_
