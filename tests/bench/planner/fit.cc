// Fits the planner's constants to published steps, leaving out one source at a
// time:
//
//   fit FOLDER [--rounds N]  prints per source the error of constants fitted to
//                            all sources, and of constants fitted without it
//   fit --predict FILE.csv   prints FILE with the columns of a prediction, as
//                            `partita simulate --sweep` does
//
// FOLDER has CSV files with the columns of a sweep (compiler/planner/README.md)
// and measured steps. The starting constants were chosen without looking at any
// step. Coordinate descent then minimises the mean over sources of the mean
// logarithmic error. The results are copied into frameworks.cc and
// cluster_builtin.cc by hand.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "compiler/planner/published/frameworks.h"
#include "compiler/planner/published/sweep.h"

namespace partita::planner {
namespace {

// Files with more rows are thinned out.
constexpr size_t kMostRows = 300;
// Larger logarithmic errors count less: no constants explain such rows.
constexpr double kOutlier = 0.5;

// The fitted constants.
struct Constants {
  Calibration shared;
  double v100, a100, hopper;  // Device::matmul
};

// Sources of the starting values: launches of 5 to 15 us for about 60 kernels
// per layer; almost no time outside the layers; the best single products
// measured on an A100 and an H100 (stas00/ml-engineering, MAMF tables), with
// the A100's value for a V100 too.
constexpr Constants kStart = {{0.5e-3, 1e-3}, 0.87, 0.87, 0.80};

struct Range {
  const char* name;
  double& (*value)(Constants&);
  double least, most;
};
const Range kRanges[] = {
    {"host seconds per layer",
     [](Constants& c) -> double& { return c.shared.dispatch; }, 0.3e-3, 1e-3},
    {"seconds per step", [](Constants& c) -> double& { return c.shared.step; },
     1e-3, 1e-2},
    {"V100, products of peak", [](Constants& c) -> double& { return c.v100; },
     0.3, 0.95},
    {"A100, products of peak", [](Constants& c) -> double& { return c.a100; },
     0.3, 0.95},
    {"H100, products of peak", [](Constants& c) -> double& { return c.hopper; },
     0.3, 0.95},
};

struct Observation {
  SweepRow row;
  double step = 0;
};
using Sources = std::map<std::string, std::vector<Observation>>;

std::string ReadFile(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Skips files without steps, and rows without a prediction or without a
// published division.
void Load(const std::filesystem::path& path, Sources& sources) {
  const std::string source = path.stem();
  auto table = ReadCsv(ReadFile(path), source);
  if (!table.ok()) return;
  auto rows = ReadSweep(*table, source, std::nullopt);
  if (!rows.ok()) return;
  std::vector<Observation> found;
  for (size_t i = 0; i < rows->size(); ++i) {
    std::map<std::string, std::string> cells;
    for (size_t k = 0; k < (*table)[0].cells.size(); ++k)
      cells[(*table)[0].cells[k]] = (*table)[i + 1].cells[k];
    // The rows of the continuous tests are for memory.
    if (cells.count("mem_max_allocated_bytes_last")) return;
    const auto number = [&](const char* column) {
      return std::atof(cells[column].c_str());
    };
    double step = number("iter_time_s");
    if (step == 0) step = number("iter_time_s_derived");
    double rate = number("tokens_per_s");
    if (rate == 0) rate = number("tokens_per_s_per_gpu") * number("n_gpus");
    if (step == 0 && rate > 0) step = number("seq_len") * number("gbs") / rate;
    if (step == 0 || (cells["tp"].empty() && number("n_gpus") > 1)) continue;
    SweepRow& row = (*rows)[i];
    if (!Predict(row).ok()) continue;
    row.choose_microbatch = false;
    found.push_back({row, step});
  }
  if (found.empty()) return;
  const size_t every = 1 + found.size() / kMostRows;
  for (size_t i = 0; i < found.size(); i += every)
    sources[source].push_back(std::move(found[i]));
}

class Fit {
 public:
  explicit Fit(Sources& sources) : sources_(sources) {}

  // Fits constants to all sources except `left_out` (empty: to all).
  Constants Run(int rounds, const std::string& left_out);
  // Predicted over measured, minus one, for each row of a source.
  std::vector<double> Errors(const Constants& constants,
                             const std::string& source);

 private:
  void Use(const Constants& constants, const std::string& source);
  double Objective(const Constants& constants, const std::string& left_out);

  Sources& sources_;
};

void Fit::Use(const Constants& constants, const std::string& source) {
  Calibrate(constants.shared);
  for (Observation& each : sources_[source]) {
    Device& device = each.row.cluster.device;
    const double before = device.matmul;
    if (device.name.find("v100") != std::string::npos)
      device.matmul = constants.v100;
    else if (device.name.find("a100") != std::string::npos)
      device.matmul = constants.a100;
    else
      device.matmul = constants.hopper;
    device.attention *= before / device.matmul;  // a share of peak
  }
}

std::vector<double> Fit::Errors(const Constants& constants,
                                const std::string& source) {
  Use(constants, source);
  std::vector<double> errors;
  for (const Observation& each : sources_[source]) {
    const SweepRow& row = each.row;
    const auto prediction =
        Evaluate(row.architecture, row.division, row.cluster, *row.software);
    if (prediction.ok()) errors.push_back(prediction->step / each.step - 1);
  }
  return errors;
}

double Fit::Objective(const Constants& constants, const std::string& left_out) {
  double sum = 0;
  int count = 0;
  for (const auto& [source, rows] : sources_) {
    if (source == left_out) continue;
    double mean = 0;
    for (const double error : Errors(constants, source)) {
      double size = std::abs(std::log1p(error));
      if (size > kOutlier) size = kOutlier + 0.3 * (size - kOutlier);
      mean += size / rows.size();
    }
    sum += mean;
    ++count;
  }
  return sum / count;
}

Constants Fit::Run(int rounds, const std::string& left_out) {
  Constants constants = kStart;
  double best = Objective(constants, left_out);
  std::vector<double> steps(std::size(kRanges), 0.3);
  for (int round = 0; round < rounds; ++round)
    for (size_t i = 0; i < steps.size(); ++i) {
      double& value = kRanges[i].value(constants);
      const double before = value;
      bool better = false;
      for (const double factor : {1 + steps[i], 1 / (1 + steps[i])}) {
        value = std::clamp(before * factor, kRanges[i].least, kRanges[i].most);
        const double objective = Objective(constants, left_out);
        better = objective < best - 1e-6;
        if (better) {
          best = objective;
          break;
        }
        value = before;
      }
      steps[i] = std::max(0.01, steps[i] * (better ? 1.3 : 0.5));
    }
  return constants;
}

struct Summary {
  double mean = 0, median = 0, bias = 0;
};

Summary Summarize(const std::vector<double>& errors) {
  Summary summary;
  std::vector<double> sizes;
  for (const double error : errors) {
    sizes.push_back(std::abs(error));
    summary.mean += std::abs(error) / errors.size();
    summary.bias += error / errors.size();
  }
  std::sort(sizes.begin(), sizes.end());
  const size_t half = sizes.size() / 2;
  summary.median =
      sizes.size() % 2 ? sizes[half] : (sizes[half - 1] + sizes[half]) / 2;
  return summary;
}

int LeaveOneOut(const char* folder, int rounds) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".csv") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  Sources sources;
  for (const auto& path : paths) Load(path, sources);
  if (sources.size() < 2) {
    std::fprintf(stderr, "fit: %s: expected steps of two sources or more\n",
                 folder);
    return 2;
  }
  Fit fit(sources);
  const Constants all = fit.Run(rounds, "");
  std::printf(
      "%-30s %5s | %21s | %21s\n%-30s %5s | %6s %6s %7s | %6s %6s %7s\n", "",
      "", "in the fit", "left out", "source", "rows", "mean", "median", "bias",
      "mean", "median", "bias");
  std::vector<double> in, out;
  for (const auto& [source, rows] : sources) {
    const Summary fitted = Summarize(fit.Errors(all, source));
    Constants without = fit.Run(rounds, source);
    const Summary left = Summarize(fit.Errors(without, source));
    std::printf(
        "%-30s %5zu | %5.1f%% %5.1f%% %+6.1f%% | %5.1f%% %5.1f%% %+6.1f%%\n",
        source.c_str(), rows.size(), 100 * fitted.mean, 100 * fitted.median,
        100 * fitted.bias, 100 * left.mean, 100 * left.median, 100 * left.bias);
    std::fflush(stdout);
    in.push_back(fitted.mean);
    out.push_back(left.mean);
  }
  const Summary fitted = Summarize(in), left = Summarize(out);
  std::printf(
      "over sources: in the fit mean %.1f %%, median %.1f %%; left out "
      "mean %.1f %%, median %.1f %%, largest %.1f %%\n\n",
      100 * fitted.mean, 100 * fitted.median, 100 * left.mean,
      100 * left.median, 100 * *std::max_element(out.begin(), out.end()));
  Constants found = all;
  for (const Range& range : kRanges)
    std::printf("%-40s %.4g\n", range.name, range.value(found));
  return 0;
}

int PrintPredictions(const char* path) {
  const auto result = RunSweep(ReadFile(path), path, std::nullopt);
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n",
                 std::string(result.status().message()).c_str());
    return 1;
  }
  std::fwrite(result->csv.data(), 1, result->csv.size(), stdout);
  return 0;
}

}  // namespace
}  // namespace partita::planner

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--predict") == 0)
    return partita::planner::PrintPredictions(argv[2]);
  std::error_code error;
  const bool counts = argc == 4 && std::strcmp(argv[2], "--rounds") == 0;
  if ((argc == 2 || counts) && std::filesystem::is_directory(argv[1], error))
    return partita::planner::LeaveOneOut(argv[1],
                                         counts ? std::atoi(argv[3]) : 20);
  std::fprintf(stderr,
               "usage: fit FOLDER [--rounds N]\n       fit --predict FILE\n");
  return 2;
}
