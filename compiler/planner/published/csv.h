// Comma-separated tables, quoted where needed (RFC 4180).
#ifndef PARTITA_COMPILER_PLANNER_PUBLISHED_CSV_H_
#define PARTITA_COMPILER_PLANNER_PUBLISHED_CSV_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace partita::planner {

struct CsvRow {
  int line = 0;  // of its first character, from 1
  std::vector<std::string> cells;
};

// Cells are unquoted. Blank lines are skipped. Refuses a row with more or fewer
// cells than the first, and an unclosed quote. Errors name the file `name` and
// the line.
absl::StatusOr<std::vector<CsvRow>> ReadCsv(const std::string& text,
                                            const std::string& name);

// Writes cells with quotes where needed, and a line end.
std::string WriteCsvRow(const std::vector<std::string>& cells);

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_PUBLISHED_CSV_H_
