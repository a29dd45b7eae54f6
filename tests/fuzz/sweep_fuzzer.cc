// Fuzzes a table of configurations. It is refused with a message, or returned
// with the same number of rows, each with a prediction above 0 or a reason for
// having none.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "compiler/planner/published/sweep.h"

using namespace partita::planner;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<SweepResult> result =
      RunSweep(text, "fuzz", std::nullopt);
  if (!result.ok()) {
    if (result.status().message().empty()) abort();
    return 0;
  }
  const absl::StatusOr<std::vector<CsvRow>> rows = ReadCsv(result->csv, "out");
  if (!rows.ok() || static_cast<int>(rows->size()) != result->rows + 1) abort();
  const size_t added = PredictedColumns().size();
  for (size_t i = 1; i < rows->size(); ++i) {
    const std::vector<std::string>& cells = (*rows)[i].cells;
    const std::string& step = cells[cells.size() - added];
    if (step.empty() == cells.back().empty()) abort();
    if (!step.empty() && !(std::atof(step.c_str()) > 0)) abort();
  }
  return 0;
}
