// Evaluates the rows of a table and writes them with their predictions.
#include "compiler/planner/published/sweep.h"

#include <algorithm>
#include <cstdio>

#include "compiler/plan/text.h"

namespace partita::planner {
namespace {

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.6g", value);
  return text;
}

// The text of a problem up to its first number. Problems are grouped by it.
std::string KindOf(const std::string& problem) {
  const std::string kind =
      plan::Trim(problem.substr(0, problem.find_first_of(":0123456789")));
  return kind.empty() ? problem : kind;
}

// Counts a problem of the row in `line`. Empty text is no problem.
void CountProblem(const std::string& found, int line,
                  SweepResult::Problem& problem) {
  if (found.empty() || ++problem.rows > 1) return;
  problem.line = line;
  problem.first = found;
}

std::vector<std::string> CellsOf(const SweepRow& row,
                                 const Prediction& prediction) {
  std::string defaults;
  for (const std::string& text : row.defaults)
    defaults += (defaults.empty() ? "" : " ") + text;
  const double step = prediction.step;
  return {Number(step),
          Number(prediction.memory.total() / 1e9),
          Number(prediction.last_rank_memory / 1e9),
          prediction.fits ? "y" : "n",
          Number(prediction.bubble / step),
          Number(prediction.exposed()),
          prediction.bound,
          prediction.traffic,
          defaults,
          ""};
}

// Hints at columns whose name is close to a known one that the table lacks.
std::vector<std::string> HintsOf(const std::vector<std::string>& header) {
  const std::vector<std::string>& known = RowColumns();
  const auto has = [](const std::vector<std::string>& words,
                      const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  std::vector<std::string> hints;
  for (const std::string& cell : header) {
    const std::string column = plan::Trim(cell);
    if (column.empty() || has(known, column)) continue;
    const std::string nearest = plan::Nearest(column, known);
    if (!nearest.empty() && !has(header, nearest))
      hints.push_back("column " + plan::Quote(column) +
                      " is not read; did you mean '" + nearest + "'?");
  }
  return hints;
}

}  // namespace

const std::vector<std::string>& RowColumns() {
  static const std::vector<std::string>* columns = new std::vector<std::string>{
      "model_family", "model",     "layers",
      "hidden",       "heads",     "kv_heads",
      "ffn",          "seq_len",   "vocab",
      "n_gpus",       "gpu",       "gpus_per_node",
      "inter_node",   "tp",        "pp",
      "dp",           "cp",        "ep",
      "vpp",          "sp",        "recompute",
      "zero_stage",   "mbs",       "gbs",
      "precision",    "framework", "task",
      "swiglu",       "untie",     "moe_experts",
      "moe_topk",     "moe_ffn",   "shared_experts",
      "etp",          "schedule",  "notes"};
  return *columns;
}

const std::vector<std::string>& PredictedColumns() {
  static const std::vector<std::string>* columns =
      new std::vector<std::string>{"predicted_iter_time_s",
                                   "predicted_mem_GB",
                                   "predicted_mem_last_rank_GB",
                                   "fits",
                                   "predicted_bubble",
                                   "predicted_exposed_s",
                                   "predicted_bound",
                                   "predicted_traffic",
                                   "defaults",
                                   "predicted_problem"};
  return *columns;
}

absl::StatusOr<Prediction> EstimateRow(const SweepRow& row) {
  return Evaluate(row.architecture, row.division, row.cluster, *row.software);
}

absl::StatusOr<Prediction> Predict(SweepRow& row, const OwnPredictor& own) {
  if (!row.problem.empty()) return absl::InvalidArgumentError(row.problem);
  const auto predict = [&] {
    return row.software->own ? own(row) : EstimateRow(row);
  };
  if (!row.choose_microbatch) return predict();
  constexpr int64_t kLargest = 64;
  absl::StatusOr<Prediction> best;
  int64_t chosen = 0;
  for (int64_t microbatch = 1; microbatch <= kLargest; microbatch *= 2) {
    row.division.microbatch = microbatch;
    absl::StatusOr<Prediction> next = predict();
    if (!next.ok()) {
      if (chosen == 0) best = std::move(next);
      break;
    }
    // Prefer one that fits, then the fastest.
    const bool better = chosen == 0 || (next->fits && !best->fits) ||
                        (next->fits == best->fits && next->step < best->step);
    if (!better) continue;
    best = std::move(next);
    chosen = microbatch;
  }
  row.division.microbatch = std::max<int64_t>(chosen, 1);
  if (chosen > 0) row.defaults.push_back("mbs=" + std::to_string(chosen));
  return best;
}

absl::StatusOr<SweepResult> RunSweep(const std::string& text,
                                     const std::string& name,
                                     const std::optional<Cluster>& cluster,
                                     const OwnPredictor& own) {
  absl::StatusOr<std::vector<CsvRow>> table = ReadCsv(text, name);
  if (!table.ok()) return table.status();
  absl::StatusOr<std::vector<SweepRow>> rows = ReadSweep(*table, name, cluster);
  if (!rows.ok()) return rows.status();
  if (rows->empty())
    return absl::InvalidArgumentError(
        name + ": expected rows below the columns' names, found none");
  const std::vector<std::string>& added = PredictedColumns();
  std::vector<std::string> header = (*table)[0].cells;
  for (const std::string& column : added)
    if (std::find(header.begin(), header.end(), column) != header.end())
      return absl::InvalidArgumentError(
          name + ":" + std::to_string((*table)[0].line) + ": column " +
          plan::Quote(column) + " is added to the output: rename it");
  header.insert(header.end(), added.begin(), added.end());
  SweepResult result;
  result.hints = HintsOf((*table)[0].cells);
  result.csv = WriteCsvRow(header);
  for (size_t i = 0; i < rows->size(); ++i) {
    std::vector<std::string> cells = (*table)[i + 1].cells;
    absl::StatusOr<Prediction> prediction = Predict((*rows)[i], own);
    ++result.rows;
    const SweepRow& row = (*rows)[i];
    CountProblem(row.other_gpu, row.line, result.other_gpus);
    std::vector<std::string> more(added.size());
    if (prediction.ok()) {
      ++result.predicted;
      CountProblem(row.other_framework, row.line, result.other_frameworks);
      more = CellsOf((*rows)[i], *prediction);
    } else {
      more.back() = std::string(prediction.status().message());
      CountProblem(more.back(), row.line, result.problems[KindOf(more.back())]);
    }
    cells.insert(cells.end(), more.begin(), more.end());
    result.csv += WriteCsvRow(cells);
  }
  return result;
}

}  // namespace partita::planner
