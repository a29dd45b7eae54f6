// Checks that the planner picks the best published configurations:
//
//   best_plans FOLDER
//
// FOLDER is the folder of calibrate.py. For each model and cluster with several
// measured divisions, prints the fastest measured division and the planner's
// pick, both with predicted times, for the measured software with its
// schedules, precision and ZeRO stages. Exits with 1 if a pick is predicted to
// be more than 2 % slower than the best published division. A configuration
// that ran but is predicted to run out of memory is an error of the memory
// model: it is named and left out.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "compiler/planner/published/sweep.h"
#include "compiler/planner/search/search.h"

namespace partita::planner {
namespace {

constexpr double kAllowed = 1.02;

struct Measured {
  SweepRow row;
  double step = 0;
};

double Number(const std::string& text) {
  return text.empty() ? 0 : std::atof(text.c_str());
}

class Table {
 public:
  explicit Table(const CsvRow& header) {
    for (size_t i = 0; i < header.cells.size(); ++i)
      column_[header.cells[i]] = i;
  }
  std::string Cell(const CsvRow& row, const char* name) const {
    const auto found = column_.find(name);
    return found == column_.end() ? "" : row.cells[found->second];
  }
  double Step(const CsvRow& row) const {
    for (const char* name : {"iter_time_s", "iter_time_s_derived"})
      if (const double step = Number(Cell(row, name)); step > 0) return step;
    double rate = Number(Cell(row, "tokens_per_s"));
    if (rate == 0)
      rate = Number(Cell(row, "tokens_per_s_per_gpu")) *
             Number(Cell(row, "n_gpus"));
    return rate == 0
               ? 0
               : Number(Cell(row, "seq_len")) * Number(Cell(row, "gbs")) / rate;
  }
  std::string Group(const CsvRow& row) const {
    std::string key;
    for (const char* name : {"layers", "hidden", "heads", "seq_len", "n_gpus",
                             "gpu", "gbs", "precision"})
      key += Cell(row, name).substr(0, 14) + " ";
    return key;
  }

 private:
  std::map<std::string, size_t> column_;
};

using Groups = std::map<std::string, std::vector<Measured>>;

void Load(const std::filesystem::path& path, Groups& groups) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  const auto table = ReadCsv(text.str(), path.string());
  if (!table.ok()) return;
  const auto rows = ReadSweep(*table, path.string(), std::nullopt);
  if (!rows.ok()) return;
  const Table cells((*table)[0]);
  for (size_t i = 0; i < rows->size(); ++i) {
    const CsvRow& row = (*table)[i + 1];
    if (const double step = cells.Step(row);
        step > 0 && (*rows)[i].problem.empty())
      groups[path.stem().string().substr(0, 12) + " " + cells.Group(row)]
          .push_back({(*rows)[i], step});
  }
}

// The measured row as a request. The search has the options that the software
// had.
Request RequestOf(const SweepRow& row) {
  Request request;
  request.architecture = row.architecture;
  request.cluster = row.cluster;
  // The cluster is taken whole: all devices that were used.
  request.cluster.devices = row.division.devices;
  request.batch = row.division.batch;
  request.precision = row.division.precision;
  request.software = row.software;
  request.fixed.schedules = {PipelineSchedule::k1F1B};
  if (row.division.zero == 3) request.fixed.zero = 3;
  request.meshes = 1;
  return request;
}

// Returns 1 if the pick is worse.
int Compare(const std::string& name, std::vector<Measured>& rows) {
  std::sort(rows.begin(), rows.end(), [](const Measured& a, const Measured& b) {
    return a.step < b.step;
  });
  SweepRow& best = rows.front().row;
  const absl::StatusOr<Prediction> published = Predict(best);
  const absl::StatusOr<SearchResult> found = Search(RequestOf(best));
  if (!published.ok() || !published->fits || !found.ok()) {
    std::string why = "it is said not to fit";
    if (!published.ok())
      why = std::string(published.status().message());
    else if (published->fits)
      why = std::string(found.status().message());
    std::printf("%-70s left out: %s\n", name.c_str(),
                why.substr(0, 80).c_str());
    return 0;
  }
  const Choice& pick = found->choices.front();
  const double ratio = pick.prediction.step / published->step;
  std::printf(
      "%-70s measured %8.3f, predicted %8.3f s (%s)\n%70s pick %.3f s "
      "= %.3f of it (%s), gap %.1f %%\n",
      name.c_str(), rows.front().step, published->step,
      Describe(best.division).c_str(), "", pick.prediction.step, ratio,
      Describe(pick.division).c_str(), 100 * found->gap);
  return ratio > kAllowed ? 1 : 0;
}

int Run(const char* folder) {
  Groups groups;
  for (const char* source :
       {"megatron_sc21", "korthikanti_2022_iter_time", "mt_nlg",
        "mosaicml_llm_foundry", "nvidia_nemo_launcher_a100", "nvidia_nemo_2407",
        "vtrain_a100_measured", "megatron_2020_tables"})
    Load(std::filesystem::path(folder) / (std::string(source) + ".csv"),
         groups);
  int compared = 0, worse = 0;
  for (auto& [name, rows] : groups) {
    // Skips the hundreds of small models on one node.
    if (rows.size() < 2 && rows.front().row.division.devices < 1024) continue;
    ++compared;
    worse += Compare(name, rows);
  }
  std::printf("%d models on clusters, %d picks more than %.0f %% slower\n",
              compared, worse, 100 * (kAllowed - 1));
  return worse > 0 ? 1 : 0;
}

}  // namespace
}  // namespace partita::planner

int main(int argc, char** argv) {
  if (argc == 2) return partita::planner::Run(argv[1]);
  std::fprintf(stderr, "usage: best_plans FOLDER\n");
  return 2;
}
