// Measures how well predictions pick the fastest published division:
//
//   best_plans FOLDER
//
// FOLDER is the folder of CSV files that calibrate.py reads. A group has rows
// that differ only in their division. For each group, prints the measured-
// fastest and the predicted-fastest division with their measured seconds, and
// the regret: how much longer the second took. Ends with 1 if the mean regret
// of a source exceeds 5 %. Groups without a division that is predicted to fit
// are named and left out: they are errors of the memory model.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/bench/planner/regret.h"

namespace partita::planner {
namespace {

constexpr double kAllowed = 0.05;
// Continuous tests in a deterministic mode, whose times are not typical.
constexpr char kGolden[] = "megatron_ci_golden";

void Print(const RegretGroup& group) {
  std::printf("  %s: of %d divisions %s took %.4g s\n", group.name.c_str(),
              group.divisions, group.fastest.c_str(), group.fastest_seconds);
  if (!group.hasPick())
    std::printf("    left out: none is predicted to fit\n");
  else
    std::printf("    picked %s, which took %.4g s: regret %.1f %%\n",
                group.pick.c_str(), group.pick_seconds, 100 * group.regret());
}

// The mean regret of a source; 0 where it has no groups.
double PrintSource(const std::string& source,
                   const std::vector<RegretGroup>& groups) {
  std::printf("%s\n", source.c_str());
  std::vector<double> regrets;
  for (const RegretGroup& group : groups) {
    Print(group);
    if (group.hasPick()) regrets.push_back(group.regret());
  }
  if (regrets.empty()) return 0;
  std::sort(regrets.begin(), regrets.end());
  double sum = 0;
  for (const double regret : regrets) sum += regret;
  const double mean = sum / static_cast<double>(regrets.size());
  std::printf(
      "  %zu groups: regret %.1f %% in the mean, %.1f %% in the "
      "median, %.1f %% at most\n",
      regrets.size(), 100 * mean, 100 * regrets[regrets.size() / 2],
      100 * regrets.back());
  return mean;
}

int Run(const char* folder) {
  std::vector<std::filesystem::path> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().extension() == ".csv" && entry.path().stem() != kGolden)
      paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  int sources = 0, over = 0;
  for (const std::filesystem::path& path : paths) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    const auto groups = RegretsOf(text.str(), path.string());
    // The folder also has tables that are not of configurations.
    if (!groups.ok() || groups->empty()) continue;
    ++sources;
    over += PrintSource(path.stem().string(), *groups) > kAllowed;
  }
  if (sources == 0) {
    std::fprintf(stderr,
                 "%s: expected CSV files with measured divisions of a model, "
                 "found none\n",
                 folder);
    return 1;
  }
  std::printf("%d sources, %d with a mean regret of more than %.0f %%\n",
              sources, over, 100 * kAllowed);
  return over > 0 ? 1 : 0;
}

}  // namespace
}  // namespace partita::planner

int main(int argc, char** argv) {
  if (argc == 2) return partita::planner::Run(argv[1]);
  std::fprintf(stderr, "usage: best_plans FOLDER\n");
  return 2;
}
