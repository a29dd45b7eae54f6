// Groups by the text of the columns that must be equal, in the table's order,
// and by the software that predictions distinguish.
#include "tests/bench/planner/regret.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

#include "compiler/planner/published/sweep.h"
#include "compiler/planner/search/search.h"

namespace partita::planner {
namespace {

// The columns that rows of a group share, the same as in calibrate.py.
constexpr const char* kSame[] = {
    "model_family", "layers",     "hidden", "heads",     "ffn",
    "seq_len",      "vocab",      "n_gpus", "gpu",       "gbs",
    "recompute",    "zero_stage", "task",   "framework", "precision"};

// A division and its seconds per step.
struct Row {
  std::string division;
  double measured = 0, predicted = 0;
  int repeats = 1;  // rows of the division; `measured` is their mean
  bool fits = false;
};

// Adds a row, or a repetition of a division that the group has.
void Add(const Row& row, std::vector<Row>& rows) {
  for (Row& other : rows)
    if (other.division == row.division) {
      ++other.repeats;
      other.measured += (row.measured - other.measured) / other.repeats;
      return;
    }
  rows.push_back(row);
}

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
  double Measured(const CsvRow& row) const {
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
  bool HasDivision(const CsvRow& row) const {
    return !Cell(row, "tp").empty() || Number(Cell(row, "n_gpus")) == 1;
  }
  bool Ran(const CsvRow& row) const {
    const std::string status = Cell(row, "status");
    return status.empty() || status == "ok";
  }
  std::string Key(const CsvRow& row) const {
    std::string key;
    for (const char* name : kSame) key += Cell(row, name) + "\n";
    return key;
  }
  std::string Name(const CsvRow& row) const {
    const std::string model = Cell(row, "model");
    return (model.empty() ? Cell(row, "model_family") : model) + ", " +
           Cell(row, "n_gpus") + " x " + Cell(row, "gpu") + ", batch " +
           Cell(row, "gbs");
  }

 private:
  std::map<std::string, size_t> column_;
};

RegretGroup GroupOf(const std::string& name, const std::vector<Row>& rows) {
  RegretGroup group;
  group.name = name;
  group.divisions = static_cast<int>(rows.size());
  const Row* pick = nullptr;
  const Row* fastest = &rows.front();
  for (const Row& row : rows) {
    if (row.measured < fastest->measured) fastest = &row;
    group.fitting += row.fits;
    if (row.fits && (pick == nullptr || row.predicted < pick->predicted))
      pick = &row;
  }
  group.fastest = fastest->division;
  group.fastest_seconds = fastest->measured;
  if (pick == nullptr) return group;
  group.pick = pick->division;
  group.pick_seconds = pick->measured;
  return group;
}

}  // namespace

absl::StatusOr<std::vector<RegretGroup>> RegretsOf(const std::string& text,
                                                   const std::string& name) {
  const auto table = ReadCsv(text, name);
  if (!table.ok()) return table.status();
  auto rows = ReadSweep(*table, name, std::nullopt);
  if (!rows.ok()) return rows.status();
  const Table cells(table->front());
  std::map<std::string, std::pair<std::string, std::vector<Row>>> groups;
  for (size_t i = 0; i < rows->size(); ++i) {
    const CsvRow& row = (*table)[i + 1];
    const double measured = cells.Measured(row);
    if (measured <= 0 || !cells.HasDivision(row) || !cells.Ran(row) ||
        !(*rows)[i].problem.empty())
      continue;
    const absl::StatusOr<Prediction> predicted = Predict((*rows)[i]);
    if (!predicted.ok()) continue;
    auto& [group, members] = groups[cells.Key(row) + (*rows)[i].software->name];
    if (members.empty()) group = cells.Name(row);
    Add({Describe((*rows)[i].division), measured, predicted->step, 1,
         predicted->fits},
        members);
  }
  std::vector<RegretGroup> found;
  for (const auto& [key, group] : groups)
    if (group.second.size() > 1)
      found.push_back(GroupOf(group.first, group.second));
  return found;
}

}  // namespace partita::planner
