// Tables as text: comma-separated, quoted where needed (RFC 4180).
#ifndef PARTITA_COMPILER_PLANNER_PUBLISHED_CSV_H_
#define PARTITA_COMPILER_PLANNER_PUBLISHED_CSV_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace partita::planner {

struct CsvRow {
  int line = 0;  // where it begins, the first is 1
  std::vector<std::string> cells;
};

// Cells as they are, without quotes; blank lines are left out. Every row has as
// many cells as the first: others are refused with their line, as are quotes
// that do not end. `name` is the file's, for errors.
absl::StatusOr<std::vector<CsvRow>> ReadCsv(const std::string& text,
                                            const std::string& name);

// With a line's end; quoted where it must be.
std::string WriteCsvRow(const std::vector<std::string>& cells);

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_PUBLISHED_CSV_H_
