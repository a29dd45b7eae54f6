// Writes JSON lines; first removes lines that a resumed run will log again.
#include "runtime/train/log.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "runtime/base/atomic_file.h"
#include "runtime/base/status_macros.h"

namespace partita::train {
namespace {

using nlohmann::ordered_json;

// The step of a line; negative if the line is not a log line.
int64_t StepOf(std::string_view line) {
  const ordered_json object =
      ordered_json::parse(line.begin(), line.end(), nullptr,
                          /*allow_exceptions=*/false);
  if (!object.is_object()) return -1;
  const auto step = object.find("step");
  return step != object.end() && step->is_number_integer()
             ? step->get<int64_t>()
             : -1;
}

// The lines of steps up to `last_step`.
absl::StatusOr<std::string> LinesToKeep(const std::string& path,
                                        const std::string& content,
                                        int64_t last_step) {
  std::string kept;
  int64_t number = 1;
  for (size_t begin = 0; begin < content.size(); ++number) {
    const size_t end = content.find('\n', begin);
    if (end == std::string::npos) break;  // killed while writing
    const std::string_view line(content.data() + begin, end + 1 - begin);
    begin = end + 1;
    const int64_t step = StepOf(line);
    if (step < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ", line ", number,
          ": expected the log of a run (a JSON object with \"step\"), found "
          "something else; name another file"));
    }
    if (step <= last_step) kept += line;
  }
  return kept;
}

}  // namespace

std::string ToJsonLine(const StepRecord& record) {
  ordered_json object = {{"step", record.step},
                         {"loss", record.loss},
                         {"lr", record.rate},
                         {"seconds", record.seconds}};
  const auto add = [&](const char* name, int64_t count) {
    object[name] = count;
    if (record.seconds > 0)
      object[absl::StrCat(name, "_per_second")] =
          static_cast<double>(count) / record.seconds;
  };
  if (record.examples > 0) add("examples", record.examples);
  if (record.tokens > 0) add("tokens", record.tokens);
  for (const auto& [name, value] : record.scalars)
    if (!object.contains(name)) object[name] = value;
  return object.dump(-1, ' ', false, ordered_json::error_handler_t::replace) +
         "\n";
}

absl::StatusOr<std::unique_ptr<JsonLog>> JsonLog::Open(const std::string& path,
                                                       int64_t last_step) {
  // A pipe or a device has no content to keep.
  std::error_code error;
  if (std::filesystem::is_regular_file(path, error)) {
    std::ifstream file(path, std::ios::binary);
    const std::string content{std::istreambuf_iterator<char>(file),
                              std::istreambuf_iterator<char>()};
    PARTITA_ASSIGN_OR_RETURN(const std::string kept,
                             LinesToKeep(path, content, last_step));
    if (kept != content)
      PARTITA_RETURN_IF_ERROR(base::WriteFileAtomically(path, kept));
  }
  PARTITA_ASSIGN_OR_RETURN(std::unique_ptr<AppendFile> file,
                           AppendFile::Open(path));
  return std::unique_ptr<JsonLog>(new JsonLog(std::move(file)));
}

absl::Status JsonLog::OnStep(const StepRecord& record) {
  return file_->Append(ToJsonLine(record));
}

}  // namespace partita::train
