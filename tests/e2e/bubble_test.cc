// Runs compiled pipelines under a virtual clock and compares their idle time
// with that of their schedules. It runs the programs, not the schedule tables.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/core/schedule_csv.h"
#include "compiler/core/timetable.h"
#include "compiler/simulator/simulate.h"
#include "gtest/gtest.h"
#include "runtime/program/artifact.h"

namespace partita::e2e {
namespace {

using simulator::Simulation;

// Eight equal layers, i.e. one per stage for four ranks with two stages.
constexpr char kConfig[] = R"({"model_type": "gpt2", "n_layer": 8, "n_head": 2,
  "n_embd": 16, "vocab_size": 31, "n_positions": 16,
  "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5,
  "architectures": ["GPT2LMHeadModel"]})";

struct Case {
  const char* schedule;
  int ranks;
  int microbatches;
  double bubble;  // if each half of a backward costs as much as a forward
  double within = 1e-9;
};

// Assigns a cost to one microbatch in each layer; all other operations are
// free.
class LayerCosts : public simulator::Costs {
 public:
  explicit LayerCosts(const core::StageCost& cost) : cost_(cost) {}

  double Compute(const program::Program& program,
                 const program::Instruction& instruction) const override {
    const program::Call* call = instruction.operation_as_Call();
    if (call == nullptr) return 0;
    const std::string name = program.functions()
                                 ->Get(static_cast<unsigned>(call->function()))
                                 ->name()
                                 ->str();
    if (name == "block_forward") return cost_.forward;
    if (name == "block_backward") return cost_.backward;
    if (name == "block_backward_input") return cost_.input_grad;
    if (name == "block_backward_weight") return cost_.weight_grad;
    EXPECT_FALSE(absl::StartsWith(name, "block_")) << name;
    return 0;
  }
  double Collective(const program::Collective&,
                    const std::vector<int64_t>&) const override {
    return 0;
  }
  double Transfer(int64_t, int64_t, int64_t) const override { return 0; }

 private:
  core::StageCost cost_;
};

class BubbleTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const Case& which = GetParam();
    const std::string folder = testing::TempDir() + "/gpt2_8l";
    ASSERT_EQ(std::system(absl::StrCat("mkdir -p ", folder).c_str()), 0);
    std::ofstream(folder + "/config.json") << kConfig;
    const std::string path = folder + "/m.partita";
    const std::string command =
        absl::StrCat("compiler/tools/partita compile ", folder,
                     " --dim batch=", which.microbatches,
                     ",seq=4 --train sgd --mesh pipe=", which.ranks,
                     " --shard D=pipe --microbatches ", which.microbatches,
                     " --schedule '", which.schedule, "' -o ", path, " > ",
                     folder, "/log 2>&1 || { cat ", folder, "/log; false; }");
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
    auto artifact = program::Artifact::Open(path);
    ASSERT_TRUE(artifact.ok()) << artifact.status();
    artifact_.emplace(*std::move(artifact));
    auto schedule = core::ReadScheduleCsv(
        artifact_->program().schedule()->str(), "schedule");
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    schedule_ = *schedule;
  }

  // Expects that the program of layers with cost `cost` equals the table under
  // that cost.
  void ExpectEqualsTable(const core::StageCost& cost) {
    const int layers = 8 / schedule_.stages;
    core::StageCost of_stage = cost;
    for (double* part : {&of_stage.forward, &of_stage.backward,
                         &of_stage.input_grad, &of_stage.weight_grad})
      *part *= layers;
    core::Costs costs;
    costs.stages.assign(static_cast<size_t>(schedule_.stages), of_stage);
    const core::Timetable table = core::MakeTimetable(schedule_, costs);
    const Simulation found =
        simulator::Simulate(artifact_->program(), LayerCosts(cost));
    EXPECT_NEAR(found.step, table.step, 1e-9);
    EXPECT_NEAR(found.Bubble(), table.bubble, 1e-9);
  }

  std::optional<program::Artifact> artifact_;
  core::Schedule schedule_;
};

// Peak number of layers in flight (forward done, backward not done) by rank.
std::vector<int> MostInFlight(const Simulation& simulation) {
  std::vector<std::map<std::string, int>> now(simulation.classes.size());
  std::vector<int> most(simulation.classes.size(), 0);
  for (const simulator::Span& span : simulation.spans) {
    const std::string& name = simulation.names[static_cast<size_t>(span.name)];
    if (!absl::StartsWith(name, "block_")) continue;
    const size_t rank = static_cast<size_t>(span.device_class);
    int& count = now[rank][name.substr(name.find('('))];
    if (absl::StartsWith(name, "block_forward"))
      most[rank] = std::max(most[rank], ++count);
    else if (absl::StartsWith(name, "block_backward (") ||
             absl::StartsWith(name, "block_backward_weight"))
      --count;
  }
  return most;
}

// Expects that no rank has more in flight than the schedule allows.
void ExpectInFlight(const program::Program& program,
                    const core::Schedule& schedule, const std::string& name) {
  simulator::SimulateOptions options;
  options.spans = true;
  const std::vector<int> most =
      MostInFlight(simulator::Simulate(program, LayerCosts({}), options));
  const std::vector<int> peaks = core::PeakInFlight(schedule);
  for (size_t rank = 0; rank < most.size(); ++rank) {
    int peak = 0;
    for (size_t stage = 0; stage < peaks.size(); ++stage)
      if (schedule.rank_of_stage[stage] == static_cast<int>(rank))
        peak = std::max(peak, peaks[stage]);
    EXPECT_EQ(most[rank], peak) << "rank " << rank;
    const int later = schedule.ranks() - static_cast<int>(rank);
    if (name == "1f1b") {
      EXPECT_EQ(most[rank], std::min(later, schedule.microbatches));
    }
    if (name == "gpipe") {
      EXPECT_EQ(most[rank], schedule.microbatches);
    }
  }
}

TEST_P(BubbleTest, IsTheSchedules) {
  const Simulation found =
      simulator::Simulate(artifact_->program(), LayerCosts({}));
  EXPECT_EQ(found.classes.size(), static_cast<size_t>(GetParam().ranks));
  EXPECT_NEAR(found.Bubble(), GetParam().bubble, GetParam().within);
  ExpectEqualsTable({});
  // Typical for transformer layers on a CPU: gradients take longer.
  ExpectEqualsTable({1, 2.3, 1.05, 1.15});
  ExpectInFlight(artifact_->program(), schedule_, GetParam().schedule);
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const int ranks : {2, 4}) {
    for (const int microbatches : {4, 8}) {
      const double fill = ranks - 1, m = microbatches;
      cases.push_back({"gpipe", ranks, microbatches, fill / (m + fill)});
      cases.push_back({"1f1b", ranks, microbatches, fill / (m + fill)});
      cases.push_back(
          {"interleaved(2)", ranks, microbatches, fill / (2 * m + fill)});
      cases.push_back({"zb-h1", ranks, microbatches, fill / (3 * m + fill)});
      // With enough microbatches, a rank never waits between its first and last
      // cell; otherwise it is no worse than the other schedule.
      if (microbatches >= 2 * ranks - 1)
        cases.push_back({"zb-v", ranks, microbatches, 0, 0.06});
      else
        cases.push_back({"zb-v", ranks, microbatches, fill / (3 * m + fill)});
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, BubbleTest, testing::ValuesIn(Cases()),
                         [](const testing::TestParamInfo<Case>& info) {
                           std::string name = absl::StrCat(
                               info.param.schedule, "_S", info.param.ranks,
                               "_m", info.param.microbatches);
                           for (char& letter : name)
                             if (!std::isalnum(
                                     static_cast<unsigned char>(letter)))
                               letter = '_';
                           return name;
                         });

}  // namespace
}  // namespace partita::e2e
