// Regret: how much slower than the fastest measured division the division is
// that is predicted to be the fastest, among published divisions of one model.
#ifndef PARTITA_TESTS_BENCH_PLANNER_REGRET_H_
#define PARTITA_TESTS_BENCH_PLANNER_REGRET_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace partita::planner {

// Rows of a table that differ only in their division: the model, batch,
// precision, software and devices are the same. Rows of the same division are
// repetitions, and their mean counts.
struct RegretGroup {
  std::string name;           // "GPT-20B, 8 x A100-80GB-SXM4, batch 2048"
  int divisions = 0;          // that have a measured and a predicted time
  int fitting = 0;            // divisions that are predicted to fit in memory
  std::string fastest, pick;  // the measured- and the predicted-fastest one
  // Measured seconds per step. 0 if no division is predicted to fit.
  double fastest_seconds = 0, pick_seconds = 0;

  bool hasPick() const { return pick_seconds > 0; }
  double regret() const { return pick_seconds / fastest_seconds - 1; }
};

// Returns the groups of two or more divisions in a CSV table with the columns
// of a sweep and measured times, as calibrate.py reads it. Leaves out rows that
// did not run, have no division or no prediction. `name` names the table in
// errors. InvalidArgument if the text is no such table.
absl::StatusOr<std::vector<RegretGroup>> RegretsOf(const std::string& text,
                                                   const std::string& name);

}  // namespace partita::planner

#endif  // PARTITA_TESTS_BENCH_PLANNER_REGRET_H_
