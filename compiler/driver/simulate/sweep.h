// A table of configurations, predicted: for people and for programs.
#ifndef PARTITA_COMPILER_DRIVER_SIMULATE_SWEEP_H_
#define PARTITA_COMPILER_DRIVER_SIMULATE_SWEEP_H_

#include <string>

#include "absl/status/statusor.h"
#include "compiler/planner/published/sweep.h"
#include "llvm/Support/JSON.h"

namespace partita::driver {

struct SweepArguments {
  std::string rows;     // a CSV file, as compiler/planner/README.md says
  std::string output;   // the same with what is predicted
  std::string cluster;  // of all rows; empty: what each names
};

// Writes `output` and returns "rows", "predicted", "seconds", "problems": of
// rows that lack a prediction for the like of it how many there are, the first
// one's line and what it has; and "hints" about columns that are not read.
// Where there is `cluster`, "other_gpus" says how many rows name another
// device, and "other_gpu" which one the first does; "other_frameworks" and
// "other_framework" the same of software that is not known.
// Rows without a framework, which are of Partita's own programs, are priced by
// `own`.
absl::StatusOr<llvm::json::Value> predictRows(const SweepArguments& arguments,
                                              const planner::OwnPredictor& own);

void printSweep(const llvm::json::Value& value, llvm::raw_ostream& stream);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_SIMULATE_SWEEP_H_
