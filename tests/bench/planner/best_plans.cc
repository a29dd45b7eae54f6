// Whether predictions pick the best published configurations:
//
//   best_plans FOLDER
//
// FOLDER as calibrate.py's. In each group of published rows that differ in
// their division alone, prints the division that was measured to be the fastest
// and the one that is predicted to be, both with their measured seconds, and
// the regret: how much longer the second took. Ends with 1 where the mean
// regret of a source is more than 5 %. Groups of which no division is predicted
// to fit are an error of the memory's model: they are named, and left out.
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
// Its steps are of tests in a deterministic mode.
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
    // Tables of other things lie beside those of configurations.
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
