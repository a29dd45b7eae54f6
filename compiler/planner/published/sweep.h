// Many configurations at once: a table of published or imagined runs, one a
// row, and the same table with what is predicted of each.
#ifndef PARTITA_COMPILER_PLANNER_PUBLISHED_SWEEP_H_
#define PARTITA_COMPILER_PLANNER_PUBLISHED_SWEEP_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/planner/cluster/cluster.h"
#include "compiler/planner/published/csv.h"
#include "compiler/planner/transformer/architecture.h"
#include "compiler/planner/transformer/evaluate.h"

namespace partita::planner {

struct SweepRow {
  Architecture architecture;
  Division division;
  Cluster cluster;
  const Software* software = nullptr;
  bool choose_microbatch = false;     // its cell was empty
  std::vector<std::string> defaults;  // "vpp=1": what cells left open
  std::string other_gpu;              // its `gpu`, where `cluster` has another
  std::string other_framework;        // its `framework`, where not known
  std::string problem;                // why nothing can be predicted; or empty
  int line = 0;                       // of the table
};

// The columns that are read; README.md says what they mean.
const std::vector<std::string>& RowColumns();

// Columns that are not among RowColumns are kept and not read. Refuses a table
// without a column that must be there, or with one twice, with file and line. A
// row that says too little or what cannot be read, or whose sizes do not go
// together, has a `problem`, and the others are read. All rows run on
// `cluster`, or on what their `gpu`, `gpus_per_node` and `inter_node` name.
absl::StatusOr<std::vector<SweepRow>> ReadSweep(
    const std::vector<CsvRow>& table, const std::string& name,
    const std::optional<Cluster>& cluster);

// Predicts a row of Partita's own programs, which takes a compiler: the driver
// compiles and simulates them.
using OwnPredictor = std::function<absl::StatusOr<Prediction>(const SweepRow&)>;
// An estimate by formulas instead, for tests and tools without a compiler.
absl::StatusOr<Prediction> EstimateRow(const SweepRow& row);

// Evaluates a row, one of Partita's own programs by `own`; of an empty `mbs`
// the fastest power of two that fits, which it writes into the row with its
// default. Fails with the row's problem.
absl::StatusOr<Prediction> Predict(SweepRow& row,
                                   const OwnPredictor& own = EstimateRow);

struct SweepResult {
  std::string csv;  // the table with the columns of Predicted()
  int rows = 0, predicted = 0;
  struct Problem {
    int rows = 0;       // that have one of this kind
    int line = 0;       // of these, where the first one is
    std::string first;  // and what it has
  };
  Problem other_gpus;                       // rows with `other_gpu`
  Problem other_frameworks;                 // and with `other_framework`
  std::map<std::string, Problem> problems;  // by kind: what has no sizes
  // Columns that are not read, and look like ones that would be.
  std::vector<std::string> hints;
};
const std::vector<std::string>& PredictedColumns();
absl::StatusOr<SweepResult> RunSweep(const std::string& text,
                                     const std::string& name,
                                     const std::optional<Cluster>& cluster,
                                     const OwnPredictor& own = EstimateRow);

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_PUBLISHED_SWEEP_H_
