// Predicts many configurations at once: a table of published or planned runs,
// one per row.
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
  bool choose_microbatch = false;     // the `mbs` cell is empty
  std::vector<std::string> defaults;  // values of empty cells, e.g. "vpp=1"
  std::string other_gpu;              // `gpu`, if `cluster` has another
  std::string other_framework;        // `framework`, if unknown
  std::string problem;                // why there is no prediction, or empty
  int line = 0;                       // in the table
};

// The known columns. README.md explains them.
const std::vector<std::string>& RowColumns();

// Reads the rows of a table. Columns outside RowColumns are kept but not read.
// Refuses a table without a required column, or with a repeated one; the error
// names file and line. A row with missing, unreadable or incompatible values
// gets a `problem`, and the other rows are read. All rows run on `cluster`, or
// else on the cluster that their `gpu`, `gpus_per_node` and `inter_node` name.
absl::StatusOr<std::vector<SweepRow>> ReadSweep(
    const std::vector<CsvRow>& table, const std::string& name,
    const std::optional<Cluster>& cluster);

// Predicts a row of Partita's own programs. The driver passes a function that
// compiles and simulates them.
using OwnPredictor = std::function<absl::StatusOr<Prediction>(const SweepRow&)>;
// Predicts a row by formulas, for tests and tools without a compiler.
absl::StatusOr<Prediction> EstimateRow(const SweepRow& row);

// Predicts a row. Rows of Partita's own programs use `own`. If `mbs` is empty,
// takes the fastest power of two that fits, and writes it into the row and its
// defaults. Fails with the row's problem.
absl::StatusOr<Prediction> Predict(SweepRow& row,
                                   const OwnPredictor& own = EstimateRow);

struct SweepResult {
  std::string csv;  // the table with PredictedColumns() added
  int rows = 0, predicted = 0;
  struct Problem {
    int rows = 0;       // rows with a problem of this kind
    int line = 0;       // the first of these rows
    std::string first;  // its problem
  };
  Problem other_gpus;        // rows with `other_gpu`
  Problem other_frameworks;  // rows with `other_framework`
  std::map<std::string, Problem>
      problems;  // by kind, the text before any number
  // Unknown columns whose name is close to a known one.
  std::vector<std::string> hints;
};
const std::vector<std::string>& PredictedColumns();
absl::StatusOr<SweepResult> RunSweep(const std::string& text,
                                     const std::string& name,
                                     const std::optional<Cluster>& cluster,
                                     const OwnPredictor& own = EstimateRow);

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_PUBLISHED_SWEEP_H_
