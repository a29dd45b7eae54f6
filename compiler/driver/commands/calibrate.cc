// Runs the probe in partita-run, a process per file.
#include "compiler/driver/commands/calibrate.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>

#include "absl/strings/str_cat.h"
#include "compiler/driver/commands/runner.h"
#include "compiler/driver/commands/temporary_folder.h"
#include "compiler/driver/compile.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/npy.h"
#include "runtime/base/status_macros.h"

namespace partita::driver {
namespace {

namespace fs = std::filesystem;

absl::StatusOr<std::vector<float>> readNumbers(const fs::path& path,
                                               size_t count) {
  PARTITA_ASSIGN_OR_RETURN(const base::MappedFile file,
                           base::MappedFile::Open(path.string()));
  PARTITA_ASSIGN_OR_RETURN(const base::NpyArray array,
                           base::ParseNpy(file.bytes(), path.string()));
  std::vector<float> numbers(count);
  if (array.dtype != base::DType::kF32 || array.data.size() != 4 * count)
    return absl::InternalError(
        absl::StrCat("expected ", count, " numbers in ", path.string()));
  std::memcpy(numbers.data(), array.data.data(), array.data.size());
  return numbers;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> calibrationFiles(
    const std::string& path) {
  std::vector<std::string> files;
  std::error_code error;
  if (fs::is_directory(path, error)) {
    for (fs::directory_iterator entry(path, error), end; !error && entry != end;
         entry.increment(error))
      if (entry->path().extension() == ".safetensors")
        files.push_back(entry->path().string());
    std::sort(files.begin(), files.end());
  } else if (fs::is_regular_file(path, error)) {
    files.push_back(path);
  }
  if (!files.empty()) return files;
  return absl::InvalidArgumentError(
      "--calibrate: expected a safetensors file of inputs, or a folder of such "
      "files, one for each run; found none in '" +
      path + "'");
}

absl::StatusOr<std::vector<quantize::Range>> measureRanges(
    mlir::ModuleOp probe, const std::vector<int64_t>& sizes,
    const std::vector<std::string>& files, const std::string& source) {
  const TemporaryFolder folder;
  if (folder.path().empty())
    return absl::InternalError("cannot make a temporary folder");
  CompileOptions options;
  options.output = folder.path() + "/probe.partita";
  options.source_folder = source;
  options.progress = false;
  if (mlir::failed(compileToFile(probe, options)))
    return absl::InternalError("cannot compile the model for calibration");
  std::vector<quantize::Range> ranges(
      sizes.size(), {std::numeric_limits<double>::infinity(),
                     -std::numeric_limits<double>::infinity(), 0});
  for (const std::string& file : files) {
    const fs::path results = folder.path() + "/results";
    if (const auto run = outputOfRunner({options.output, "--inputs", file,
                                         "--output-dir", results.string()});
        !run.ok())
      return absl::InvalidArgumentError(
          "--calibrate: expected inputs of the model in " + file +
          ", found a run that failed");
    std::vector<std::vector<float>> numbers;
    for (const char* name :
         {quantize::kLows, quantize::kHighs, quantize::kSquares}) {
      PARTITA_ASSIGN_OR_RETURN(
          numbers.emplace_back(),
          readNumbers(results / (std::string(name) + ".npy"), sizes.size()));
    }
    for (size_t i = 0; i < sizes.size(); ++i) {
      quantize::Range& range = ranges[i];
      range.low = std::min(range.low, double{numbers[0][i]});
      range.high = std::max(range.high, double{numbers[1][i]});
      range.mean_square += double{numbers[2][i]} /
                           static_cast<double>(sizes[i]) /
                           static_cast<double>(files.size());
    }
  }
  return ranges;
}

}  // namespace partita::driver
