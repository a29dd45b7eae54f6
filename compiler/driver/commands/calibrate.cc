// Runs the probe in partita-run, a process per file.
#include "compiler/driver/commands/calibrate.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/driver/commands/runner.h"
#include "compiler/driver/commands/temporary_folder.h"
#include "compiler/driver/compile.h"
#include "compiler/quantize/histogram.h"
#include "llvm/ADT/StringRef.h"
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

// A compiled probe in a temporary folder.
class Probe {
 public:
  absl::Status compile(mlir::ModuleOp module, const std::string& source) {
    if (folder_.path().empty())
      return absl::InternalError("cannot make a temporary folder");
    CompileOptions options;
    options.output = artifact();
    options.source_folder = source;
    options.progress = false;
    if (mlir::failed(compileToFile(module, options)))
      return absl::InternalError("cannot compile the model for calibration");
    return absl::OkStatus();
  }

  absl::Status run(const std::string& inputs) const {
    if (outputOfRunner({artifact(), "--inputs", inputs, "--output-dir",
                        results().string()})
            .ok())
      return absl::OkStatus();
    return absl::InvalidArgumentError(
        "--calibrate: expected inputs of the model in " + inputs +
        ", found a run that failed");
  }

  absl::StatusOr<std::vector<float>> result(const std::string& name,
                                            size_t count) const {
    return readNumbers(results() / (name + ".npy"), count);
  }

 private:
  std::string artifact() const { return folder_.path() + "/probe.partita"; }
  fs::path results() const { return folder_.path() + "/results"; }

  TemporaryFolder folder_;
};

absl::StatusOr<std::vector<quantize::Histogram>> countAll(
    const Probe& probe, const std::vector<quantize::Range>& ranges,
    const std::vector<std::string>& files) {
  std::vector<quantize::Histogram> histograms;
  for (const quantize::Range& range : ranges)
    histograms.push_back(
        {range.low, range.high, std::vector<double>(quantize::kBins, 0)});
  for (const std::string& file : files) {
    PARTITA_RETURN_IF_ERROR(probe.run(file));
    PARTITA_ASSIGN_OR_RETURN(
        const std::vector<float> counts,
        probe.result(quantize::kCounts, ranges.size() * quantize::kBins));
    for (size_t i = 0; i < counts.size(); ++i)
      histograms[i / quantize::kBins].counts[i % quantize::kBins] +=
          double{counts[i]};
  }
  return histograms;
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

absl::StatusOr<RangeMethod> parseRangeMethod(const std::string& text) {
  if (text == "minmax") return RangeMethod{RangeMethod::kMinMax, 100};
  if (text == "entropy") return RangeMethod{RangeMethod::kEntropy, 100};
  llvm::StringRef rest(text);
  double percent = 0;
  if (rest.consume_front("percentile=") && !rest.getAsDouble(percent) &&
      percent > 50 && percent <= 100)
    return RangeMethod{RangeMethod::kPercentile, percent};
  return absl::InvalidArgumentError(
      "expected --range minmax, entropy or percentile=P with P above 50 and at "
      "most 100, as in percentile=99.99; found '" +
      text + "'");
}

absl::StatusOr<std::vector<quantize::Calibration::Extremes>>
FileCalibration::measure(mlir::ModuleOp module,
                         const std::vector<quantize::Weight>& weights) {
  Probe probe;
  PARTITA_RETURN_IF_ERROR(
      probe.compile(*quantize::rangeProbe(module, weights), source_));
  auto main = module.lookupSymbol<mlir::func::FuncOp>("main");
  const auto activations = quantize::findActivations(main, weights);
  size_t total = 0;
  for (const quantize::Activation& activation : activations)
    total += static_cast<size_t>(activation.channels());
  std::vector<double> lows(total, std::numeric_limits<double>::infinity()),
      highs(total, -std::numeric_limits<double>::infinity()), squares(total, 0);
  for (const std::string& file : files_) {
    PARTITA_RETURN_IF_ERROR(probe.run(file));
    PARTITA_ASSIGN_OR_RETURN(const auto low,
                             probe.result(quantize::kLows, total));
    PARTITA_ASSIGN_OR_RETURN(const auto high,
                             probe.result(quantize::kHighs, total));
    PARTITA_ASSIGN_OR_RETURN(const auto square,
                             probe.result(quantize::kSquares, total));
    for (size_t i = 0; i < total; ++i) {
      // NaN must show.
      if (!(low[i] >= lows[i])) lows[i] = double{low[i]};
      if (!(high[i] <= highs[i])) highs[i] = double{high[i]};
      squares[i] += double{square[i]} / static_cast<double>(files_.size());
    }
  }
  std::vector<Extremes> extremes;
  size_t begin = 0;
  for (const quantize::Activation& activation : activations) {
    const auto count = static_cast<size_t>(activation.channels()),
               end = begin + count;
    const auto size = static_cast<double>(
        llvm::cast<mlir::RankedTensorType>(activation.value.getType())
            .getNumElements() /
        activation.channels());
    Extremes& each = extremes.emplace_back();
    for (; begin < end; ++begin) {
      each.lows.push_back(lows[begin]);
      each.highs.push_back(highs[begin]);
      each.mean_squares.push_back(squares[begin] / size);
    }
  }
  return extremes;
}

absl::Status FileCalibration::narrow(
    mlir::ModuleOp module, const std::vector<quantize::Weight>& weights,
    std::vector<quantize::Range>& ranges) {
  if (method_.kind == RangeMethod::kMinMax) return absl::OkStatus();
  Probe counter;
  PARTITA_RETURN_IF_ERROR(counter.compile(
      *quantize::histogramProbe(module, weights, ranges), source_));
  PARTITA_ASSIGN_OR_RETURN(const std::vector<quantize::Histogram> histograms,
                           countAll(counter, ranges, files_));
  for (size_t i = 0; i < ranges.size(); ++i) {
    const quantize::Span span =
        method_.kind == RangeMethod::kEntropy
            ? quantize::spanOfEntropy(histograms[i])
            : quantize::spanOfPercentile(histograms[i], method_.percent);
    ranges[i].low = span.low;
    ranges[i].high = span.high;
  }
  return absl::OkStatus();
}

}  // namespace partita::driver
