// Regret: how much slower than the fastest measured division the division is
// that is predicted to be the fastest, among published divisions of one model.
#ifndef PARTITA_TESTS_BENCH_PLANNER_REGRET_H_
#define PARTITA_TESTS_BENCH_PLANNER_REGRET_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace partita::planner {

// Rows of a table that differ in their division alone: of one model, batch,
// precision and software on the same devices.
struct RegretGroup {
  std::string name;           // "GPT-20B, 8 x A100-80GB-SXM4, batch 2048"
  int divisions = 0;          // measured and predicted
  int fitting = 0;            // of them, predicted to fit
  std::string fastest, pick;  // divisions: measured to be, predicted to be
  // Measured seconds of a step. 0 where no division is predicted to fit.
  double fastest_seconds = 0, pick_seconds = 0;

  bool hasPick() const { return pick_seconds > 0; }
  double regret() const { return pick_seconds / fastest_seconds - 1; }
};

// The groups of two divisions and more in a table (CSV) with a sweep's columns
// and measured ones, as calibrate.py reads them. Rows that did not run, or
// whose division was not printed, or that have no prediction, are left out.
// `name` is the table's, for errors. Refuses what is no such table.
absl::StatusOr<std::vector<RegretGroup>> RegretsOf(const std::string& text,
                                                   const std::string& name);

}  // namespace partita::planner

#endif  // PARTITA_TESTS_BENCH_PLANNER_REGRET_H_
