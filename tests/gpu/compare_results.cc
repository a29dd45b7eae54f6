// compare_results EXPECTED ACTUAL LIMIT: compares two results.
// Folders of .npy files: compares every tensor of EXPECTED by the largest
// difference over the tensor's largest magnitude. Files of `partita-run train
// --json`: compares the losses, each relative to its magnitude. Prints the
// largest difference. Exits 0 if it is within LIMIT, 1 if not, 2 if the
// arguments are wrong.
#include <dirent.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "runtime/base/npy.h"

namespace partita {
namespace {

// Added to magnitudes: differences below this are noise in a tensor of small
// numbers only.
constexpr double kFloor = 1e-3;

struct Difference {
  double distance = 0;  // the largest relative difference
  std::string where;
  std::string wrong;  // why they cannot be compared; else empty

  void Update(double found, const std::string& name) {
    if (std::isnan(found)) found = INFINITY;
    if (found > distance || where.empty()) {
      distance = std::max(found, distance);
      where = name;
    }
  }
};

std::optional<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  if (file.bad()) return std::nullopt;
  return text.str();
}

// Names of the .npy files in a folder. None if it is not a folder.
std::optional<std::vector<std::string>> TensorsIn(const std::string& folder) {
  DIR* const open = opendir(folder.c_str());
  if (open == nullptr) return std::nullopt;
  std::vector<std::string> names;
  while (const dirent* entry = readdir(open)) {
    const std::string name = entry->d_name;
    if (name.size() > 4 && name.substr(name.size() - 4) == ".npy")
      names.push_back(name);
  }
  closedir(open);
  std::sort(names.begin(), names.end());
  return names;
}

// Compares one tensor. Returns why it cannot be compared, or an empty string.
std::string CompareTensor(const std::string& expected_path,
                          const std::string& actual_path,
                          const std::string& name, Difference& worst) {
  const auto expected_bytes = ReadFile(expected_path);
  if (!expected_bytes) return "cannot read " + expected_path;
  const auto actual_bytes = ReadFile(actual_path);
  if (!actual_bytes) return "expected " + actual_path + ", found none";
  const auto expected = base::ParseNpy(*expected_bytes, expected_path);
  if (!expected.ok()) return expected.status().ToString();
  const auto actual = base::ParseNpy(*actual_bytes, actual_path);
  if (!actual.ok()) return actual.status().ToString();
  if (expected->shape != actual->shape)
    return "expected " + base::TypeName(expected->dtype, expected->shape) +
           " in " + actual_path + ", found " +
           base::TypeName(actual->dtype, actual->shape);
  double largest = 0, apart = 0;
  const int64_t count = base::ElementCount(expected->shape).value_or(0);
  for (int64_t i = 0; i < count; ++i) {
    const double want =
        base::ElementAsDouble(expected->dtype, expected->data.data(), i);
    const double got =
        base::ElementAsDouble(actual->dtype, actual->data.data(), i);
    largest = std::max(largest, std::abs(want));
    const double difference = want == got ? 0 : std::abs(want - got);
    apart = std::isnan(difference) ? INFINITY : std::max(apart, difference);
  }
  worst.Update(apart / (largest + kFloor), name);
  return "";
}

Difference CompareFolders(const std::string& expected,
                          const std::string& actual,
                          const std::vector<std::string>& names) {
  Difference worst;
  if (names.empty()) worst.wrong = "no tensors in " + expected;
  for (const std::string& name : names) {
    if (!worst.wrong.empty()) break;
    worst.wrong = CompareTensor(expected + "/" + name, actual + "/" + name,
                                name.substr(0, name.size() - 4), worst);
  }
  return worst;
}

std::optional<std::vector<double>> LossesOf(const std::string& path) {
  const auto text = ReadFile(path);
  if (!text) return std::nullopt;
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  if (!json.is_object() || !json.contains("losses") ||
      !json["losses"].is_array())
    return std::nullopt;
  std::vector<double> losses;
  for (const auto& loss : json["losses"])
    losses.push_back(loss.is_number() ? loss.get<double>() : NAN);
  return losses;
}

Difference CompareLosses(const std::string& expected_path,
                         const std::string& actual_path) {
  Difference worst;
  const auto expected = LossesOf(expected_path);
  const auto actual = LossesOf(actual_path);
  if (!expected || !actual) {
    worst.wrong =
        "expected losses in " + (expected ? actual_path : expected_path);
  } else if (expected->size() != actual->size() || expected->empty()) {
    worst.wrong = "expected " + std::to_string(expected->size()) +
                  " losses, found " + std::to_string(actual->size());
  } else {
    for (size_t i = 0; i < expected->size(); ++i)
      worst.Update(std::abs((*expected)[i] - (*actual)[i]) /
                       (std::abs((*expected)[i]) + kFloor),
                   "step " + std::to_string(i + 1));
  }
  return worst;
}

int Main(int argc, char** argv) {
  char* end = nullptr;
  const double limit = argc == 4 ? std::strtod(argv[3], &end) : 0;
  if (argc != 4 || *end != '\0' || !(limit >= 0)) {
    std::fprintf(stderr,
                 "usage: compare_results EXPECTED ACTUAL LIMIT (folders of "
                 ".npy, or files of losses)\n");
    return 2;
  }
  const auto names = TensorsIn(argv[1]);
  const Difference worst = names ? CompareFolders(argv[1], argv[2], *names)
                                 : CompareLosses(argv[1], argv[2]);
  if (!worst.wrong.empty()) {
    std::printf("%s\n", worst.wrong.c_str());
    return 1;
  }
  std::printf("%.1e apart (%s), %.0e allowed\n", worst.distance,
              worst.where.c_str(), limit);
  return worst.distance <= limit ? 0 : 1;
}

}  // namespace
}  // namespace partita

int main(int argc, char** argv) { return partita::Main(argc, argv); }
