// partita-run train as its users see it, on a small program.
#include <stdlib.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runtime/base/npy.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/program/test_program.h"
#include "runtime/program/test_training_program.h"
#include "runtime/session/checkpoints.h"
#include "runtime/session/open_ranks.h"
#include "runtime/tools/run_command.h"

namespace partita::tools {
namespace {

using nlohmann::json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

using Floats = std::vector<float>;
constexpr int64_t kBatch = 5, kRows = 23,
                  kWidth = program::TrainingProgram::kWidth,
                  kOut = program::TrainingProgram::kOut;

class TrainCommandTest : public ::testing::Test {
 protected:
  TrainCommandTest() {
    folder_ = ::testing::TempDir() + "/train_XXXXXX";
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    x_ = WriteArray("x.npy", kRows, kWidth);
    t_ = WriteArray("t.npy", kRows, kOut);
    data_ = "x=" + folder_ + "/x.npy,t=" + folder_ + "/t.npy";
    Compile("model", 1, 1);
  }
  ~TrainCommandTest() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const {
    return folder_ + "/" + name;
  }
  void Compile(const std::string& name, int64_t data, int64_t tensor) {
    const absl::Status written = program::WriteArtifact(
        Path(name), program::TrainingProgram(kBatch, data, tensor).Parts());
    ASSERT_TRUE(written.ok()) << written;
  }
  Floats WriteArray(const std::string& name, int64_t rows, int64_t columns) {
    Floats values;
    for (int64_t i = 0; i < rows * columns; ++i)
      values.push_back(static_cast<float>((i * 7 + columns) % 11) * 0.1f);
    EXPECT_TRUE(base::WriteNpy(Path(name), base::DType::kF32, {rows, columns},
                               values.data())
                    .ok());
    return values;
  }

  int Run(std::vector<std::string> arguments) {
    out_.str("");
    error_.str("");
    arguments.insert(arguments.begin(), "train");
    arguments.insert(arguments.end(), {"--threads", "1"});
    return RunCommand(arguments, out_, error_);
  }
  // Report of a successful run.
  json Train(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--json", "--quiet"});
    EXPECT_EQ(Run(arguments), 0) << error_.str();
    return out_.str().empty() ? json() : json::parse(out_.str());
  }
  std::vector<json> Log() const {
    std::ifstream file(Path("log.jsonl"));
    std::vector<json> lines;
    for (std::string line; std::getline(file, line);)
      lines.push_back(json::parse(line));
    return lines;
  }

  std::string folder_, data_;
  Floats x_, t_;
  std::ostringstream out_, error_;
};

TEST_F(TrainCommandTest, FiveStepsOnOneBatch) {
  ASSERT_TRUE(base::WriteNpy(Path("x5.npy"), base::DType::kF32,
                             {kBatch, kWidth}, x_.data())
                  .ok());
  ASSERT_TRUE(base::WriteNpy(Path("t5.npy"), base::DType::kF32, {kBatch, kOut},
                             t_.data())
                  .ok());
  const json report =
      Train({Path("model"), "--input", "x=" + Path("x5.npy"), "--input",
             "t=" + Path("t5.npy"), "--steps", "5", "--lr", "0.02",
             "--schedule", "linear", "--warmup", "2", "--min-lr", "0.5",
             "--checkpoint-dir", Path("ckpt")});
  const auto saved = checkpoint::OpenLatest(
      Path("ckpt"), checkpoint::Verify::kChecksums, nullptr);
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_EQ(saved->state().step, 5);
  const Floats x(x_.begin(), x_.begin() + kBatch * kWidth),
      t(t_.begin(), t_.begin() + kBatch * kOut);
  Floats w = program::TrainingProgram::Start();
  ASSERT_EQ(report["losses"].size(), 5u);
  const float rates[] = {0.01f, 0.02f, 0.02f, 0.02f * (0.5f + 0.5f * 2 / 3),
                         0.02f * (0.5f + 0.5f / 3)};
  for (size_t i = 0; i < 5; ++i) {
    const float expected = program::TrainingStep(x, t, rates[i], w);
    EXPECT_NEAR(report["losses"][i], expected, 1e-4 * expected) << i;
  }
  const auto found = saved->Find("w");
  ASSERT_TRUE(found.ok()) << found.status();
  for (size_t i = 0; i < w.size(); ++i)
    EXPECT_NEAR(static_cast<const float*>(found->data)[i], w[i], 1e-5);
  EXPECT_EQ(*static_cast<const float*>(saved->Find("count")->data), 5);
  EXPECT_TRUE(saved->Has("f"));
  EXPECT_EQ(report["end"], "steps");
  EXPECT_EQ(report["last_step"], 5);
  EXPECT_GT(report["examples_per_second"], 0);
  EXPECT_GT(report["flops_per_step"], 2 * kBatch * kWidth * kOut);
}

// Rates rise by equal factors until the loss, which is a square, diverges.
TEST_F(TrainCommandTest, RangeTest) {
  const json report = Train({Path("model"), "--data", data_, "--steps", "200",
                             "--lr", "100", "--first-lr", "1e-6", "--schedule",
                             "range_test", "--log", Path("log.jsonl")});
  EXPECT_EQ(report["end"], "diverged");
  const std::vector<json> lines = Log();
  ASSERT_GT(lines.size(), 20u);
  EXPECT_LT(lines.size(), 200u);
  for (size_t i = 0; i < lines.size(); ++i)
    EXPECT_NEAR(lines[i]["lr"],
                100 * std::pow(1e-6, 1 - static_cast<double>(i) / 199),
                1e-6 * lines[i]["lr"].get<double>());
  ASSERT_TRUE(report.contains("suggested_rate"));
  const double suggested = report["suggested_rate"];
  EXPECT_GT(suggested, lines[10]["lr"].get<double>());
  EXPECT_LT(suggested, lines.back()["lr"].get<double>());
}

// A loss that is not a number ends a range test with its report, too.
TEST_F(TrainCommandTest, RangeTestOfHugeRates) {
  const json report =
      Train({Path("model"), "--data", data_, "--steps", "200", "--lr", "1e30",
             "--schedule", "range_test_linear"});
  EXPECT_EQ(report["end"], "diverged");
  EXPECT_LT(report["losses"].size(), 10u);
  EXPECT_FALSE(report.contains("suggested_rate"));
}

// The model's batch has 5 examples.
TEST_F(TrainCommandTest, RatesFollowTheBatch) {
  const auto rate = [&](std::vector<std::string> rule) {
    std::vector<std::string> arguments = {
        Path("model"), "--data", data_,   "--steps",        "1",
        "--lr",        "0.02",   "--log", Path("log.jsonl")};
    arguments.insert(arguments.end(), rule.begin(), rule.end());
    Train(arguments);
    return Log().at(0)["lr"].get<double>();
  };
  EXPECT_NEAR(rate({}), 0.02, 1e-8);
  EXPECT_NEAR(rate({"--lr-batch-rule", "linear", "--lr-batch", "10"}), 0.01,
              1e-8);
  EXPECT_NEAR(rate({"--lr-batch-rule", "sqrt", "--lr-batch", "20"}), 0.01,
              1e-8);
}

TEST_F(TrainCommandTest, EveryMeshGivesTheSameLosses) {
  const std::vector<std::string> rest = {"--data", data_,  "--steps", "9",
                                         "--lr",   "0.02", "--seed",  "3"};
  const auto losses = [&](const std::string& model) {
    std::vector<std::string> arguments = {Path(model)};
    arguments.insert(arguments.end(), rest.begin(), rest.end());
    return Train(arguments)["losses"].get<std::vector<double>>();
  };
  const std::vector<double> expected = losses("model");
  ASSERT_EQ(expected.size(), 9u);
  EXPECT_LT(expected[8], expected[0]);
  for (const auto& [data, tensor] :
       {std::pair(2, 1), std::pair(1, 2), std::pair(2, 2), std::pair(3, 1)}) {
    Compile("divided", data, tensor);
    const std::vector<double> found = losses("divided");
    ASSERT_EQ(found.size(), 9u);
    for (size_t i = 0; i < 9; ++i)
      EXPECT_NEAR(found[i], expected[i], 1e-4 * expected[i]) << i;
  }
}

TEST_F(TrainCommandTest, ResumesUnderAnotherPlan) {
  Compile("divided", 2, 2);
  const std::vector<std::string> common = {
      "--data", data_, "--lr", "0.02", "--log", Path("log.jsonl")};
  const auto run = [&](const std::string& model,
                       std::vector<std::string> more) {
    more.insert(more.begin(), Path(model));
    more.insert(more.end(), common.begin(), common.end());
    return Train(more);
  };
  const json whole = run("model", {"--steps", "10"});
  const std::string ckpt = Path("ckpt");
  run("model", {"--steps", "4", "--checkpoint-dir", ckpt, "--resume"});
  EXPECT_THAT(error_.str(),
              HasSubstr("no checkpoint yet; beginning at step 1"));
  const json rest =
      run("divided", {"--steps", "10", "--checkpoint-dir", ckpt, "--resume",
                      "--checkpoint-every", "3", "--keep", "2"});
  EXPECT_THAT(error_.str(), HasSubstr("going on from " + ckpt + "/step-0000"));
  EXPECT_EQ(rest["first_step"], 5);
  ASSERT_EQ(rest["losses"].size(), 6u);
  for (size_t i = 0; i < 6; ++i)
    EXPECT_NEAR(rest["losses"][i], whole["losses"][i + 4],
                1e-4 * whole["losses"][i + 4].get<double>());
  const std::vector<json> log = Log();
  ASSERT_EQ(log.size(), 10u);
  for (size_t i = 0; i < 10; ++i) EXPECT_EQ(log[i]["step"], i + 1);
  EXPECT_TRUE(std::filesystem::exists(ckpt + "/step-00000009"));
  EXPECT_TRUE(std::filesystem::exists(ckpt + "/step-00000010"));
  EXPECT_FALSE(std::filesystem::exists(ckpt + "/step-00000006"));
  // No steps are left.
  EXPECT_TRUE(run("model", {"--steps", "10", "--checkpoint-dir", ckpt,
                            "--resume"})["losses"]
                  .empty());
}

TEST_F(TrainCommandTest, ResumedStepsHaveTheSameBits) {
  const std::vector<std::string> common = {
      Path("model"), "--data", data_, "--lr", "0.02", "--checkpoint-dir"};
  const auto run = [&](const std::string& folder,
                       const std::vector<std::string>& more) {
    std::vector<std::string> arguments = common;
    arguments.push_back(Path(folder));
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Train(arguments)["losses"].get<std::vector<double>>();
  };
  const std::vector<double> whole = run("a", {"--steps", "8"});
  run("b", {"--steps", "3"});
  const std::vector<double> rest = run("b", {"--steps", "8", "--resume"});
  EXPECT_EQ(rest, std::vector<double>(whole.begin() + 3, whole.end()));
}

TEST_F(TrainCommandTest, ResumesWhatAProgramSavedWithoutAPositionInTheData) {
  const std::vector<std::string> common = {
      Path("model"), "--data",           data_,       "--lr",
      "0.02",        "--checkpoint-dir", Path("ckpt")};
  const auto run = [&](const std::string& steps) {
    std::vector<std::string> arguments = common;
    arguments.insert(arguments.end(), {"--steps", steps, "--resume"});
    return Train(arguments);
  };
  session::CheckpointOptions saved;
  saved.folder = Path("ckpt");
  saved.loaded.model = Path("model");
  saved.loaded.threads = 1;
  {
    const auto ranks = session::OpenAllRanks(saved.loaded);
    ASSERT_TRUE(ranks.ok()) << ranks.status();
    const auto checkpoints = session::TrainCheckpoints::Open(
        **ranks, saved, /*start_step=*/0, [](const std::string&) {});
    ASSERT_TRUE(checkpoints.ok()) << checkpoints.status();
    ASSERT_TRUE((*checkpoints)->Save(3, /*data_state=*/"").ok());
    ASSERT_TRUE((*checkpoints)->Finish().ok());
  }
  EXPECT_EQ(run("5")["first_step"], 4);
  EXPECT_THAT(error_.str(), HasSubstr("the data begins anew"));
  EXPECT_EQ(run("6")["first_step"], 6);
  EXPECT_THAT(error_.str(), Not(HasSubstr("the data begins anew")));
}

// The loss of a step belongs to the parameters before it.
TEST_F(TrainCommandTest, WhatDivergesReplacesNoGoodCheckpoint) {
  const auto run = [&](const std::string& data, const std::string& steps,
                       const std::string& rate) {
    return Run({Path("model"), "--data", data, "--steps", steps, "--lr", rate,
                "--resume", "--checkpoint-dir", Path("ckpt"), "--keep", "1",
                "--checkpoint-every", "1"});
  };
  const auto has = [&](int step) {
    return std::filesystem::exists(Path("ckpt/step-0000000") +
                                   std::to_string(step));
  };
  ASSERT_EQ(run(data_, "2", "0.02"), 0) << error_.str();
  EXPECT_FALSE(has(1));
  // Parameters of step 3 are finite, and its checkpoint is complete.
  EXPECT_EQ(run(data_, "5", "1e30"), 1);
  EXPECT_THAT(error_.str(), HasSubstr("step 4: the loss is"));
  EXPECT_TRUE(has(2));
  EXPECT_TRUE(has(3));
}

TEST_F(TrainCommandTest, ParametersThatAreNotFiniteAreNotSaved) {
  Floats large(kBatch * kWidth, 1e6f);
  ASSERT_TRUE(base::WriteNpy(Path("large.npy"), base::DType::kF32,
                             {kBatch, kWidth}, large.data())
                  .ok());
  ASSERT_TRUE(base::WriteNpy(Path("t5.npy"), base::DType::kF32, {kBatch, kOut},
                             t_.data())
                  .ok());
  const auto run = [&](const std::string& steps) {
    return Run({Path("model"), "--input", "x=" + Path("large.npy"), "--input",
                "t=" + Path("t5.npy"), "--steps", steps, "--lr", "1e30",
                "--checkpoint-dir", Path(steps), "--checkpoint-every", "1"});
  };
  EXPECT_EQ(run("2"), 1);
  EXPECT_THAT(error_.str(),
              HasSubstr("checkpoint of step 1: parameter 'w' is no longer "
                        "finite, so nothing is saved; training goes on"));
  EXPECT_THAT(error_.str(), HasSubstr("step 2: the loss is"));
  EXPECT_FALSE(std::filesystem::exists(Path("2/step-00000001")));
  // The step is also the last one.
  EXPECT_EQ(run("1"), 1);
  EXPECT_THAT(error_.str(), HasSubstr("'w' is no longer finite"));
}

TEST_F(TrainCommandTest, ASignalEndsInOrder) {
  std::thread killer([this] {
    // Wait until the run has logged a step.
    while (!std::filesystem::exists(Path("log.jsonl")) ||
           std::filesystem::file_size(Path("log.jsonl")) == 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    kill(getpid(), SIGINT);
  });
  const int code = Run({Path("model"), "--data", data_, "--steps", "1000000000",
                        "--log", Path("log.jsonl"), "--lr", "1e-6",
                        "--checkpoint-dir", Path("ckpt"), "--quiet"});
  killer.join();
  ASSERT_EQ(code, 0) << error_.str();
  const int64_t last = static_cast<int64_t>(Log().size());
  EXPECT_THAT(out_.str(),
              HasSubstr("ended   after step " + std::to_string(last) +
                        " of 1000000000 by SIGINT; saved in " + Path("ckpt") +
                        ", --resume continues from there"));
  const auto saved = checkpoint::OpenLatest(
      Path("ckpt"), checkpoint::Verify::kChecksums, nullptr);
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_EQ(saved->state().step, last);
}

TEST_F(TrainCommandTest, AFullDiskIsToldAndTrainingGoesOn) {
  const auto run = [&](const std::string& steps) {
    return Run({Path("model"), "--data", data_, "--steps", steps, "--resume",
                "--checkpoint-dir", Path("ckpt"), "--checkpoint-every", "2"});
  };
  ASSERT_EQ(run("2"), 0) << error_.str();
  EXPECT_THAT(error_.str(), HasSubstr("saved " + Path("ckpt/step-00000002")));
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const struct rlimit full = {200, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &full), 0);
  const int code = run("7");
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  // Only the last failed save is an error.
  EXPECT_EQ(code, 1);
  EXPECT_THAT(error_.str(), HasSubstr("step 7/7  loss "));
  for (const char* step : {"4", "6"})
    EXPECT_THAT(error_.str(),
                ContainsRegex(std::string("\ncheckpoint of step ") + step +
                              ": .*File too large.*; those before are intact, "
                              "training goes on\n"));
  EXPECT_THAT(error_.str(),
              ContainsRegex("\npartita-run: checkpoint of step 7: .*File too "
                            "large.*; those before are intact\n"));
  ASSERT_EQ(run("7"), 0) << error_.str();
  EXPECT_THAT(error_.str(),
              HasSubstr("going on from " + Path("ckpt/step-00000002")));
}

TEST_F(TrainCommandTest, TablesForPeople) {
  ASSERT_EQ(Run({Path("model"), "--data", data_, "--steps", "30", "--events",
                 Path("events")}),
            0)
      << error_.str();
  EXPECT_THAT(out_.str(), HasSubstr("step      loss\n1         "));
  EXPECT_THAT(out_.str(), HasSubstr("\n30        "));
  const std::string tables = out_.str();
  EXPECT_EQ(std::count(tables.begin(), tables.end(), '\n'), 1 + 12 + 3);
  EXPECT_THAT(out_.str(), ContainsRegex("time    30 steps in [0-9]\\.[0-9]+ s, "
                                        "[0-9.]+ ms each, .* examples/s, "));
  EXPECT_THAT(error_.str(), HasSubstr("step 1/30  loss "));
  EXPECT_THAT(error_.str(), HasSubstr("step 30/30  loss "));
  EXPECT_FALSE(std::filesystem::is_empty(Path("events")));
}

TEST_F(TrainCommandTest, TheDataMayEnd) {
  const json report = Train(
      {Path("model"), "--data", data_, "--steps", "100", "--epochs", "2"});
  EXPECT_EQ(report["end"], "data");
  EXPECT_EQ(report["last_step"], 2 * (kRows / kBatch));
}

TEST_F(TrainCommandTest, ALossThatIsNoNumberNamesItsStep) {
  EXPECT_EQ(Run({Path("model"), "--data", data_, "--steps", "1000", "--lr",
                 "100", "--quiet"}),
            1);
  EXPECT_THAT(error_.str(), HasSubstr("partita-run: step "));
  EXPECT_THAT(error_.str(), HasSubstr(": the loss is "));
  EXPECT_THAT(error_.str(), HasSubstr("lower the learning rate"));
}

TEST_F(TrainCommandTest, Refusals) {
  EXPECT_EQ(Run({Path("model"), "--data", data_}), 2);
  EXPECT_THAT(error_.str(), HasSubstr("partita-run train: expected --steps"));
  EXPECT_THAT(error_.str(), HasSubstr("Try partita-run train --help."));
  EXPECT_EQ(Run({Path("model"), "--input", "x=ones", "--steps", "1"}), 1);
  EXPECT_THAT(error_.str(), HasSubstr("no content for input 't'"));
  EXPECT_EQ(Run({Path("model"), "--input", "y=ones", "--steps", "1"}), 1);
  EXPECT_THAT(error_.str(), HasSubstr("there is no input 'y'"));
  EXPECT_EQ(Run({Path("model"), "--data", "x=" + Path("no.npy"), "--input",
                 "t=ones", "--steps", "1"}),
            1);
  EXPECT_THAT(error_.str(), HasSubstr("no.npy"));
  ASSERT_TRUE(
      program::WriteArtifact(Path("sample"), program::SampleProgram().Parts())
          .ok());
  EXPECT_EQ(Run({Path("sample"), "--input", "x=ones", "--steps", "1"}), 1);
  EXPECT_THAT(
      error_.str(),
      HasSubstr("updates no parameter; compile the model with --train"));
  EXPECT_EQ(Run({"--help"}), 0);
  EXPECT_THAT(out_.str(), HasSubstr("usage: partita-run train MODEL.partita"));
}

TEST_F(TrainCommandTest, CheckpointsOfOtherRunsAreRefused) {
  const std::vector<std::string> base = {
      Path("model"), "--data",           data_,        "--steps",
      "4",           "--checkpoint-dir", Path("ckpt"), "--quiet"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), base.begin(), base.end());
    return Run(more);
  };
  ASSERT_EQ(with({}), 0) << error_.str();
  EXPECT_EQ(with({}), 1);
  EXPECT_THAT(error_.str(), HasSubstr(Path("ckpt")));
  EXPECT_EQ(with({"--resume", "--seed", "9"}), 1);
  EXPECT_THAT(error_.str(),
              HasSubstr("expected seed 0, with which the run began, found "
                        "seed 9"));
  program::TrainingProgram other(kBatch, 1, 1);
  other.program.parameters[1]->name = "counter";
  ASSERT_TRUE(program::WriteArtifact(Path("model"), other.Parts()).ok());
  EXPECT_EQ(with({"--resume"}), 1);
  EXPECT_THAT(error_.str(), HasSubstr("counter"));
}

}  // namespace
}  // namespace partita::tools
