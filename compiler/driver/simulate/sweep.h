// Predicts a table of configurations, for people and for programs.
#ifndef PARTITA_COMPILER_DRIVER_SIMULATE_SWEEP_H_
#define PARTITA_COMPILER_DRIVER_SIMULATE_SWEEP_H_

#include <string>

#include "absl/status/statusor.h"
#include "compiler/planner/published/sweep.h"
#include "llvm/Support/JSON.h"

namespace partita::driver {

struct SweepArguments {
  std::string rows;     // a CSV file, see compiler/planner/README.md
  std::string output;   // the same table with predictions
  std::string cluster;  // for all rows; empty: what each row names
};

// Writes `output` and returns "rows", "predicted", "seconds", "problems" and
// "hints". "problems" lists each reason for a missing prediction, with the
// number of rows and the first row's line and message; "hints" are about
// columns that are not read. With `cluster`, "other_gpus" is the number of rows
// that name another device, and "other_gpu" the first such name;
// "other_frameworks" and "other_framework" are the same for unknown software.
// Rows without a framework, which describe Partita's own programs, are priced
// by `own`.
absl::StatusOr<llvm::json::Value> predictRows(const SweepArguments& arguments,
                                              const planner::OwnPredictor& own);

void printSweep(const llvm::json::Value& value, llvm::raw_ostream& stream);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_SIMULATE_SWEEP_H_
