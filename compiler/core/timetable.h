// Runs a schedule under a virtual clock: cell times and bubbles.
#ifndef PARTITA_COMPILER_CORE_TIMETABLE_H_
#define PARTITA_COMPILER_CORE_TIMETABLE_H_

#include <string>
#include <vector>

#include "compiler/core/schedule.h"

namespace partita::core {

// Times in any one unit. A kBackward is one cell and may cost less than the sum
// of its halves.
struct StageCost {
  double forward = 1;
  double backward = 2;
  double input_grad = 1;
  double weight_grad = 1;
};

struct Costs {
  std::vector<StageCost> stages;  // [stages]; empty: the default everywhere
  // Time from the end of a cell until its value is on another rank. Transfers
  // block neither ranks nor other transfers.
  double transfer = 0;
};

struct TimedCell {
  Cell cell;
  double start = 0;
  double end = 0;
};

struct TimedTransfer {
  Cell value;  // named as in Needs
  int from = 0, to = 0;
  double start = 0;
  double end = 0;
};

// `count` microbatches are in flight from `time` on, as PeakInFlight counts.
struct InFlightChange {
  double time = 0;
  int count = 0;
};

// Times of one step. Without flushes: of a run from its start, long enough to
// show the steady state.
struct Timetable {
  std::vector<int> rank_of_stage;
  int microbatches = 0;  // total in this table
  std::vector<std::vector<TimedCell>> ranks;
  std::vector<TimedTransfer> transfers;
  double end = 0;   // end of the last cell
  double step = 0;  // length of a step, in the steady state
  // Fraction of a step, 0 .. 1, in which the rank is idle; and the mean over
  // all ranks.
  std::vector<double> rank_bubble;
  double bubble = 0;
  std::vector<std::vector<InFlightChange>> in_flight;  // [stage], by time
};

// The schedule must pass CheckSchedule.
Timetable MakeTimetable(const Schedule& schedule, const Costs& costs = {});

// Draws a table for a terminal: one row per stage, columns are time. A cell is
// its letter, its microbatch if it fits, and dashes to its end; a dot is a
// bubble. Long tables are split into bands of at most `width` columns (60 or
// more). Ends with one line per rank.
std::string DrawText(const Timetable& timetable, int width = 100);

// Draws the same as a self-contained SVG document, with transfers.
std::string DrawSvg(const Timetable& timetable);

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_TIMETABLE_H_
