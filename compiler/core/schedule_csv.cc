// Reads and writes tables of cells.
#include "compiler/core/schedule_csv.h"

#include <algorithm>
#include <optional>
#include <sstream>

#include "absl/status/status.h"

namespace partita::core {
namespace {

// Larger numbers are typing errors and would waste memory.
constexpr int kMaxStage = 1023;
constexpr int kMaxMicrobatch = 4095;

std::string Trimmed(const std::string& text) {
  const char* blank = " \t\r";
  const size_t first = text.find_first_not_of(blank);
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

// Parses a whole number at position `at` and moves `at` behind it.
std::optional<int> ReadNumber(const std::string& text, size_t& at, int most) {
  int number = 0;
  const size_t begin = at;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
    number = number * 10 + (text[at] - '0');
    if (number > most) return std::nullopt;
  }
  if (at == begin) return std::nullopt;
  return number;
}

std::optional<Cell> ReadCell(const std::string& text, bool periodic) {
  const size_t kind = std::string("FBIW").find(text[0]);
  if (kind == std::string::npos) return std::nullopt;
  Cell cell;
  cell.work = static_cast<Work>(kind);
  size_t at = 1;
  const std::optional<int> stage = ReadNumber(text, at, kMaxStage);
  if (!stage.has_value() || at >= text.size() || text[at++] != '.')
    return std::nullopt;
  const std::optional<int> microbatch = ReadNumber(text, at, kMaxMicrobatch);
  if (!microbatch.has_value()) return std::nullopt;
  cell.stage = *stage;
  cell.microbatch = *microbatch;
  if (at == text.size()) return cell;
  if (!periodic || text[at++] != '@') return std::nullopt;
  const bool negative = at < text.size() && text[at] == '-';
  if (negative) ++at;
  const std::optional<int> version = ReadNumber(text, at, kMaxMicrobatch);
  if (!version.has_value() || at != text.size()) return std::nullopt;
  cell.version = negative ? -*version : *version;
  return cell;
}

struct Row {
  int line;
  std::vector<std::string> fields;  // not trimmed
  long bars() const {
    return std::count_if(fields.begin(), fields.end(), [](const auto& field) {
      return Trimmed(field) == "|";
    });
  }
};

std::vector<Row> Split(const std::string& text) {
  std::vector<Row> rows;
  std::istringstream stream(text);
  // Editors and spreadsheets may begin a file with a byte order mark.
  const std::string byte_order_mark = "\xef\xbb\xbf";
  if (text.compare(0, byte_order_mark.size(), byte_order_mark) == 0)
    stream.ignore(static_cast<std::streamsize>(byte_order_mark.size()));
  int number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    const std::string trimmed = Trimmed(line);
    if (trimmed.empty() || trimmed[0] == '#') continue;
    Row row{number, {}};
    std::istringstream fields(line);
    for (std::string field; std::getline(fields, field, ',');)
      row.fields.push_back(field);
    rows.push_back(row);
  }
  return rows;
}

// Derives the numbers of stages and microbatches and the rank of each stage
// from the cells.
absl::Status Complete(Schedule& schedule, const std::string& name) {
  schedule.trains = !schedule.flushes;
  for (auto* part : {&schedule.warm_up, &schedule.cells}) {
    for (size_t rank = 0; rank < part->size(); ++rank) {
      for (const Cell& cell : (*part)[rank]) {
        if (cell.stage >= schedule.stages) {
          schedule.stages = cell.stage + 1;
          schedule.rank_of_stage.resize(schedule.stages, -1);
        }
        schedule.trains |= cell.work != Work::kForward;
        int& owner = schedule.rank_of_stage[cell.stage];
        if (owner < 0) owner = static_cast<int>(rank);
        // Backwards in a period belong to the period's own step.
        if (part == &schedule.cells &&
            (schedule.flushes || cell.work != Work::kForward))
          schedule.microbatches =
              std::max(schedule.microbatches, cell.microbatch + 1);
      }
    }
  }
  for (int stage = 0; stage < schedule.stages; ++stage)
    if (schedule.rank_of_stage[stage] < 0)
      return absl::InvalidArgumentError(
          name + ": expected cells of every stage from 0 to " +
          std::to_string(schedule.stages - 1) + ", found none of stage " +
          std::to_string(stage));
  if (schedule.microbatches == 0)
    return absl::InvalidArgumentError(
        name + ": expected one row of cells per rank, such as F0.0,B0.0; " +
        "found none");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Schedule> ReadScheduleCsv(const std::string& text,
                                         const std::string& name) {
  const std::vector<Row> rows = Split(text);
  Schedule schedule;
  for (const Row& row : rows)
    if (row.bars() > 0) schedule.flushes = false;
  for (const Row& row : rows) {
    const std::string where = name + ":" + std::to_string(row.line) + ": ";
    if (!schedule.flushes && row.bars() != 1)
      return absl::InvalidArgumentError(
          where + "expected one field | between warm-up and period, as in " +
          "other rows, found " + std::to_string(row.bars()));
    schedule.cells.emplace_back();
    if (!schedule.flushes) schedule.warm_up.emplace_back();
    bool warm_up = !schedule.flushes;
    for (size_t i = 0; i < row.fields.size(); ++i) {
      const std::string field = Trimmed(row.fields[i]);
      if (field.empty()) continue;
      if (field == "|") {
        warm_up = false;
        continue;
      }
      const std::optional<Cell> cell = ReadCell(field, !schedule.flushes);
      if (!cell.has_value())
        return absl::InvalidArgumentError(
            where + "field " + std::to_string(i + 1) +
            ": expected F, B, I or W with stage and microbatch, such as " +
            (schedule.flushes ? "F0.3" : "F0.3 or F0.3@-1") +
            ", of stages to " + std::to_string(kMaxStage) +
            " and microbatches to " + std::to_string(kMaxMicrobatch) +
            ", found '" + field + "'");
      (warm_up ? schedule.warm_up : schedule.cells).back().push_back(*cell);
    }
  }
  if (absl::Status status = Complete(schedule, name); !status.ok())
    return status;
  return schedule;
}

std::string WriteScheduleCsv(const Schedule& schedule) {
  std::string text;
  for (int rank = 0; rank < schedule.ranks(); ++rank) {
    std::vector<std::string> fields;
    if (!schedule.flushes) {
      for (const Cell& cell : schedule.warm_up[rank])
        fields.push_back(ToString(cell));
      fields.push_back("|");
    }
    for (const Cell& cell : schedule.cells[rank])
      fields.push_back(ToString(cell));
    // Without the comma the row would be a blank line.
    if (fields.empty()) text += ",";
    for (size_t i = 0; i < fields.size(); ++i)
      text += (i == 0 ? "" : ",") + fields[i];
    text += "\n";
  }
  return text;
}

}  // namespace partita::core
