// Runs compiled pipelines under a virtual clock with measured costs. Each
// operation takes the time in a profile of the same program, so stages are not
// exactly equal and backwards are not exactly twice the forwards. The idle
// share must match the formulas for equal stages, except for the time of
// embedding, head and updates.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/simulator/simulate.h"
#include "gtest/gtest.h"
#include "runtime/program/artifact.h"
#include "runtime/program/labels.h"

namespace partita::e2e {
namespace {

constexpr int kMicrobatches = 8;
// Another process may use the CPU during one run.
constexpr int kRuns = 5;

// Eight equal layers, each with much more work than the rest of the model.
constexpr char kConfig[] = R"({"model_type": "gpt2", "n_layer": 8, "n_head": 4,
  "n_embd": 64, "vocab_size": 31, "n_positions": 32,
  "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5,
  "architectures": ["GPT2LMHeadModel"]})";

// Seconds of an operation from profiles of runs: the mean over operations of
// the same name, in the run with the smallest mean.
class MeasuredCosts : public simulator::Costs {
 public:
  void Add(const nlohmann::json& profile) {
    std::map<std::string, double> calls, seconds;
    for (const auto& row : profile) {
      const std::string name = KeyOf(row["name"]);
      seconds[name] += 1e-3 * row["ms"].get<double>();
      calls[name] += row["calls"].get<double>();
    }
    for (const auto& [name, sum] : seconds) {
      const double mean = sum / calls[name];
      const auto [known, is_new] = seconds_.try_emplace(name, mean);
      if (!is_new) known->second = std::min(known->second, mean);
    }
  }

  double Compute(const program::Program& program,
                 const program::Instruction& instruction) const override {
    std::string name;
    if (const program::Launch* launch = instruction.operation_as_Launch())
      name = program::KernelLabel(program, *launch).str();
    else if (const program::Gemm* gemm = instruction.operation_as_Gemm())
      name = absl::StrCat("gemm ", gemm->batch(), "x", gemm->m(), "x",
                          gemm->n(), "x", gemm->k());
    else
      return 0;
    const auto found = seconds_.find(name);
    EXPECT_NE(found, seconds_.end()) << name << " is not in the profile";
    return found == seconds_.end() ? 0 : found->second;
  }
  double Collective(const program::Collective&,
                    const std::vector<int64_t>&) const override {
    return 0;
  }
  double Transfer(int64_t, int64_t, int64_t) const override { return 0; }

 private:
  // For products, the name includes the sizes.
  static std::string KeyOf(const std::string& name) {
    if (!absl::StartsWith(name, "gemm ")) return name;
    return name.substr(0, name.find(' ', 5));
  }

  std::map<std::string, double> seconds_;
};

struct Case {
  const char* schedule;
  int ranks;
  // Tolerance per step. Zero-bubble schedules wait longer if weight gradients,
  // which fill their gaps, take less time than forwards and input gradients.
  double within = 0.04;
};

class MeasuredBubbleTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/gpt2_8l";
    ASSERT_EQ(std::system(absl::StrCat("mkdir -p ", folder_).c_str()), 0);
    std::ofstream(folder_ + "/config.json") << kConfig;
  }

  void Run(const std::string& command) const {
    const std::string log = folder_ + "/log";
    ASSERT_EQ(std::system(absl::StrCat(command, " 2> ", log, " || { cat ", log,
                                       "; false; }")
                              .c_str()),
              0)
        << command;
  }

  // The idle share of a step.
  double Bubble(const char* schedule, int ranks) const {
    const std::string path = folder_ + "/m.partita";
    Run(absl::StrCat("compiler/tools/partita compile ", folder_,
                     " --dim batch=", 2 * kMicrobatches,
                     ",seq=32 --train sgd --mesh pipe=", ranks,
                     " --shard D=pipe --microbatches ", kMicrobatches,
                     " --schedule '", schedule, "' -o ", path, " > /dev/null"));
    MeasuredCosts costs;
    for (int run = 0; run < kRuns; ++run) {
      const nlohmann::json report = Profiled(path, ranks);
      EXPECT_FALSE(report.is_discarded());
      if (report.is_discarded()) return -1;
      costs.Add(report["profile"]);
    }
    const auto artifact = program::Artifact::Open(path);
    EXPECT_TRUE(artifact.ok()) << artifact.status();
    if (!artifact.ok()) return -1;
    return simulator::Simulate(artifact->program(), costs).Bubble();
  }

  nlohmann::json Profiled(const std::string& path, int ranks) const {
    const std::string report = folder_ + "/report.json";
    Run(absl::StrCat("runtime/tools/partita-run ", path,
                     " --input input_ids=random:0:31 --input "
                     "targets=random:0:31 --random-inputs 1 --threads ",
                     ranks, " --warmup 1 --repeat 2 --json --profile > ",
                     report));
    std::ifstream file(report);
    return nlohmann::json::parse(file, nullptr, false);
  }

  std::string folder_;
};

double FormulaOf(const std::string& schedule, int ranks) {
  const double fill = ranks - 1, m = kMicrobatches;
  if (schedule == "interleaved(2)") return fill / (2 * m + fill);
  if (schedule == "zb-h1") return fill / (3 * m + fill);
  if (schedule == "zb-v") return 0;
  return fill / (m + fill);
}

TEST_P(MeasuredBubbleTest, IsNearTheFormula) {
  const auto [schedule, ranks, within] = GetParam();
  const double formula = FormulaOf(schedule, ranks);
  const double found = Bubble(schedule, ranks);
  std::printf("%s on %d: %.3f, formula %.3f\n", schedule, ranks, found,
              formula);
  EXPECT_NEAR(found, formula, within);
}

INSTANTIATE_TEST_SUITE_P(
    All, MeasuredBubbleTest,
    testing::Values(Case{"gpipe", 2}, Case{"1f1b", 2}, Case{"1f1b", 4},
                    Case{"interleaved(2)", 4}, Case{"zb-h1", 4, 0.06},
                    Case{"zb-v", 4, 0.1}),
    [](const testing::TestParamInfo<Case>& info) {
      std::string name =
          absl::StrCat(info.param.schedule, "_S", info.param.ranks);
      for (char& letter : name)
        if (!std::isalnum(static_cast<unsigned char>(letter))) letter = '_';
      return name;
    });

}  // namespace
}  // namespace partita::e2e
