// Parses in one pass. A quoted cell may contain commas, quotes and line ends.
#include "compiler/planner/published/csv.h"

namespace partita::planner {
namespace {

constexpr size_t kMostRows = 1000000;

absl::Status Refuse(const std::string& name, int line,
                    const std::string& message) {
  return absl::InvalidArgumentError(name + ":" + std::to_string(line) + ": " +
                                    message);
}

}  // namespace

absl::StatusOr<std::vector<CsvRow>> ReadCsv(const std::string& text,
                                            const std::string& name) {
  std::vector<CsvRow> rows;
  CsvRow row{1, {""}};
  int line = 1;
  bool quoted = false, was_quoted = false;
  // Spreadsheets begin UTF-8 files with a byte order mark.
  const size_t begin = text.rfind("\xef\xbb\xbf", 0) == 0 ? 3 : 0;
  const auto finish = [&]() -> absl::Status {
    const bool blank = row.cells.size() == 1 && row.cells[0].empty();
    if (!blank && !rows.empty() && row.cells.size() != rows[0].cells.size())
      return Refuse(name, row.line,
                    "expected " + std::to_string(rows[0].cells.size()) +
                        " cells as in the first row, found " +
                        std::to_string(row.cells.size()));
    if (rows.size() > kMostRows)
      return Refuse(name, row.line, "expected at most 1000000 rows");
    if (!blank) rows.push_back(std::move(row));
    row = {line, {""}};
    was_quoted = false;
    return absl::OkStatus();
  };
  for (size_t i = begin; i < text.size(); ++i) {
    const char c = text[i];
    std::string& cell = row.cells.back();
    if (c == '\n') ++line;
    if (quoted) {
      if (c != '"') {
        cell += c;
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        cell += '"';
        ++i;
      } else {
        quoted = false;
        was_quoted = true;
      }
    } else if (c == '"' && cell.empty() && !was_quoted) {
      quoted = true;
    } else if (c == ',') {
      row.cells.emplace_back();
      was_quoted = false;
    } else if (c == '\n') {
      if (absl::Status status = finish(); !status.ok()) return status;
    } else if (c != '\r') {
      if (was_quoted)
        return Refuse(name, line, "expected a comma after a closing quote");
      cell += c;
    }
  }
  if (quoted)
    return Refuse(name, row.line, "expected a closing quote, found the end");
  if (absl::Status status = finish(); !status.ok()) return status;
  return rows;
}

std::string WriteCsvRow(const std::vector<std::string>& cells) {
  std::string text;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) text += ',';
    if (cells[i].find_first_of(",\"\r\n") == std::string::npos) {
      text += cells[i];
      continue;
    }
    text += '"';
    for (char c : cells[i]) text += c == '"' ? "\"\"" : std::string(1, c);
    text += '"';
  }
  return text + "\n";
}

}  // namespace partita::planner
