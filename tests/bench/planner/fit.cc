// Fits the planner's constants to published steps:
//
//   fit FOLDER [ROUNDS]
//
// FOLDER as calibrate.py's. Coordinate descent on the mean over sources of the
// mean logarithmic error, over every second row of each source; prints the
// constants, the error they give on those rows and on the rows left out. What
// is found is written into cluster.cc and software.cc by hand.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "compiler/planner/sweep.h"

namespace partita::planner {
namespace {

// Rows of a source beyond this many are thinned out.
constexpr int kMostRows = 300;
// From here on an error counts less: rows that nothing explains.
constexpr double kOutlier = 0.5;

struct Observation {
  SweepRow row;
  std::string source;
  double step = 0;
  bool fitted = false;  // else it is left out
};

struct Constant {
  std::string name;
  std::function<double&()> value;
  double least, most;
};

class Fit {
 public:
  void Load(const std::filesystem::path& path);
  void Run(int rounds);

 private:
  void AddDevice(const std::string& device, const char* field,
                 double Device::* member, double least, double most);
  void AddSoftware(const std::string& name, const char* field,
                   double Software::* member, double least, double most);
  void AddConstants();
  double Error(bool fitted);

  std::vector<Observation> observations_;
  std::map<std::string, Device> devices_;
  std::vector<Constant> constants_;
};

void Fit::Load(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  const std::string source = path.stem();
  auto table = ReadCsv(text.str(), source);
  if (!table.ok()) return;
  auto rows = ReadSweep(*table, source, std::nullopt);
  if (!rows.ok()) return;  // not of steps
  const size_t every = 1 + rows->size() / kMostRows;
  for (size_t i = 0, taken = 0; i < rows->size(); i += every) {
    std::map<std::string, std::string> cells;
    for (size_t k = 0; k < (*table)[0].cells.size(); ++k)
      cells[(*table)[0].cells[k]] = (*table)[i + 1].cells[k];
    const auto number = [&](const char* column) {
      return std::atof(cells[column].c_str());
    };
    double step = number("iter_time_s");
    if (step == 0) step = number("iter_time_s_derived");
    double rate = number("tokens_per_s");
    if (rate == 0) rate = number("tokens_per_s_per_gpu") * number("n_gpus");
    if (step == 0 && rate > 0) step = number("seq_len") * number("gbs") / rate;
    SweepRow& row = (*rows)[i];
    // Maxima of memory are what the continuous tests' rows are for.
    if (step == 0 || cells.count("mem_max_allocated_bytes_last")) continue;
    devices_[row.cluster.device.name] = row.cluster.device;
    observations_.push_back({row, source, step, taken++ % 2 == 0});
  }
}

void Fit::AddDevice(const std::string& device, const char* field,
                    double Device::* member, double least, double most) {
  if (!devices_.count(device)) return;
  constants_.push_back(
      {device + " " + field,
       [this, device, member]() -> double& { return devices_[device].*member; },
       least, most});
}

void Fit::AddSoftware(const std::string& name, const char* field,
                      double Software::* member, double least, double most) {
  for (Software& software : SoftwareTable())
    if (software.name == name)
      constants_.push_back(
          {name + " " + field,
           [&software, member]() -> double& { return software.*member; }, least,
           most});
}

void Fit::AddConstants() {
  for (const char* device : {"a100-80-sxm", "h100-sxm", "v100-32-sxm2"})
    AddDevice(device, "matmul", &Device::matmul, 0.4, 0.94);
  AddDevice("a100-80-sxm", "streaming", &Device::streaming, 0.5, 0.95);
  for (const char* device : {"a100-80-sxm", "h100-sxm"})
    AddDevice(device, "attention", &Device::attention, 0.2, 0.9);
  for (const char* name : {"megatron-lm", "megatron-deepspeed", "fsdp"})
    AddSoftware(name, "step", &Software::step, 0, 0.2);
  for (const char* name : {"megatron-deepspeed", "nemo megatron"})
    AddSoftware(name, "dispatch", &Software::dispatch, 1e-4, 3e-3);
  for (const char* name : {"deepspeed 3d", "nemo megatron"})
    AddSoftware(name, "products", &Software::products, 0.4, 1);
  AddSoftware("deepspeed zero-3", "gather", &Software::gather, 0.02, 1);
  for (const char* name : {"deepspeed zero-3", "fsdp"})
    AddSoftware(name, "gather_overlap", &Software::gather_overlap, 0, 1);
  AddSoftware("fsdp", "attention", &Software::attention, 0.2, 1);
  AddSoftware("megatron-core", "tensor_overlap", &Software::tensor_overlap, 0,
              1);
  AddSoftware("megatron-core", "gradient_overlap", &Software::gradient_overlap,
              0, 1);
}

double Fit::Error(bool fitted) {
  // A100s differ in memory only.
  if (devices_.count("a100-40-sxm") && devices_.count("a100-80-sxm")) {
    Device& small = devices_["a100-40-sxm"];
    const Device& large = devices_["a100-80-sxm"];
    small.matmul = large.matmul;
    small.streaming = large.streaming;
    small.attention = large.attention;
  }
  std::map<std::string, std::pair<double, int>> sources;
  for (Observation& each : observations_) {
    if (each.fitted != fitted) continue;
    each.row.cluster.device = devices_[each.row.cluster.device.name];
    SweepRow row = each.row;
    const absl::StatusOr<Prediction> prediction = Predict(row);
    if (!prediction.ok()) continue;
    double error = std::abs(std::log(prediction->step / each.step));
    if (error > kOutlier) error = kOutlier + 0.3 * (error - kOutlier);
    sources[each.source].first += error;
    ++sources[each.source].second;
  }
  double sum = 0;
  for (const auto& [source, errors] : sources)
    sum += errors.first / errors.second;
  return sources.empty() ? 0 : sum / sources.size();
}

void Fit::Run(int rounds) {
  AddConstants();
  double best = Error(true);
  std::printf("before: %.4f on rows to fit, %.4f on the rest\n", best,
              Error(false));
  std::vector<double> factors(constants_.size(), 0.15);
  for (int round = 0; round < rounds; ++round)
    for (size_t i = 0; i < constants_.size(); ++i) {
      const Constant& constant = constants_[i];
      double& value = constant.value();
      const double before = value;
      // A constant of 0 starts from a little of what it may be.
      const double from = before > 0 ? before : 0.02 * constant.most;
      bool better = false;
      for (double sign : {1.0, -1.0}) {
        value = std::clamp(from * (1 + sign * factors[i]), constant.least,
                           constant.most);
        const double error = Error(true);
        better = error < best - 1e-6;
        if (better) {
          best = error;
          break;
        }
        value = before;
      }
      factors[i] = std::max(0.01, factors[i] * (better ? 1.3 : 0.5));
    }
  for (const Constant& constant : constants_)
    std::printf("%-36s %.4g\n", constant.name.c_str(), constant.value());
  std::printf("after: %.4f on rows to fit, %.4f on the rest\n", Error(true),
              Error(false));
}

}  // namespace
}  // namespace partita::planner

int main(int argc, char** argv) {
  std::error_code error;
  if (argc < 2 || !std::filesystem::is_directory(argv[1], error)) {
    std::fprintf(stderr, "usage: fit FOLDER [ROUNDS]\n");
    return 2;
  }
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1]))
    if (entry.path().extension() == ".csv") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  partita::planner::Fit fit;
  for (const auto& path : paths) fit.Load(path);
  fit.Run(argc > 2 ? std::atoi(argv[2]) : 8);
  return 0;
}
