// Runs a loop built by hand: its number of iterations, its values, its limit.
#include <stdlib.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/device/null_device.h"
#include "runtime/executor/executor.h"
#include "runtime/program/test_loop_program.h"

namespace partita::executor {
namespace {

using base::DType;

class LoopsTest : public ::testing::Test {
 protected:
  LoopsTest() : cpu_(std::move(cpu::MakeCpuDevice({1})).value()) {
    folder_ = ::testing::TempDir() + "/loops_XXXXXX";
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
  }
  ~LoopsTest() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<Executor> Load(const program::LoopProgram& loop,
                                 const LoadOptions& options = {}) {
    const std::string path = folder_ + "/model.partita";
    EXPECT_TRUE(program::WriteArtifact(path, loop.Parts()).ok());
    auto executor = Executor::Load(path, *cpu_, options);
    EXPECT_TRUE(executor.ok()) << executor.status();
    return executor.ok() ? std::move(*executor) : nullptr;
  }

  // Runs on x = 1, 2, ... 32, or with another first number.
  absl::Status Run(Executor& executor, bool go, bool a, bool b,
                   float first = 1) {
    x_.resize(32);
    for (size_t i = 0; i < x_.size(); ++i) x_[i] = static_cast<float>(i + 1);
    x_[0] = first;
    y_.assign(32, 0);
    const char in[] = {go, a, b};
    char out[3] = {9, 9, 9};
    const absl::Status status =
        executor.Run({{DType::kI1, {}, &in[0]},
                      {DType::kI1, {}, &in[1]},
                      {DType::kI1, {}, &in[2]},
                      {DType::kF32, {4, 8}, x_.data()}},
                     {{DType::kI1, {}, &out[0]},
                      {DType::kI1, {}, &out[1]},
                      {DType::kI1, {}, &out[2]},
                      {DType::kF32, {4, 8}, y_.data()}});
    go_ = out[0];
    return status;
  }

  // The power of two by which the last run multiplied.
  float Factor() const {
    for (size_t i = 0; i < y_.size(); ++i)
      EXPECT_EQ(y_[i], x_[i] * y_[0] / x_[0]);
    return y_[0] / x_[0];
  }

  std::unique_ptr<device::Device> cpu_;
  std::string folder_;
  std::vector<float> x_, y_;
  char go_ = 0;
};

TEST_F(LoopsTest, TheConditionDecidesBeforeEachIteration) {
  const auto executor = Load(program::LoopProgram());
  ASSERT_NE(executor, nullptr);
  const struct {
    bool go, a, b;
    float factor;
  } cases[] = {{false, true, true, 1},
               {true, false, true, 2},
               {true, true, false, 4},
               {true, true, true, 8},
               {false, false, false, 1}};
  for (const auto& c : cases) {
    const absl::Status status = Run(*executor, c.go, c.a, c.b);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(Factor(), c.factor);
    EXPECT_EQ(go_, 0);
  }
}

TEST_F(LoopsTest, ALoopWithoutEndIsEnded) {
  LoadOptions options;
  options.loop_limit = std::chrono::milliseconds(50);
  const auto executor = Load(program::LoopProgram(/*last=*/true), options);
  ASSERT_NE(executor, nullptr);
  const auto begin = std::chrono::steady_clock::now();
  const absl::Status status = Run(*executor, true, true, true);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(
      std::string(status.message()),
      testing::MatchesRegex(
          "'call' failed: expected the loop to end within 0.05 s, found .* "
          "iterations and no end; a longer --timeout lets it go on"));
  // The next run is as good as the first one.
  EXPECT_TRUE(Run(*executor, true, false, false).ok());
  EXPECT_EQ(Factor(), 2);
}

TEST_F(LoopsTest, AProfileHasTheLoopAndItsSteps) {
  const auto executor = Load(program::LoopProgram());
  ASSERT_NE(executor, nullptr);
  executor->EnableProfile();
  ASSERT_TRUE(Run(*executor, true, true, true).ok());
  EXPECT_EQ(executor->step_count(), 5);
  EXPECT_EQ(Factor(), 8);
  EXPECT_THAT(executor->profile()->ToString(), testing::HasSubstr("loop"));
}

// Two iterations make 1e38 infinite. The copies of what a loop carries keep the
// origin, also from before the loop.
TEST_F(LoopsTest, NumbersThatAreNotFiniteAreTracedThroughIterations) {
  program::LoopProgram loop;
  loop.program.outputs[3]->name = "loss";
  program::TensorTypeT type;
  type.shape = {4, 8};
  loop.program.functions[0]->body[3]->output_types.push_back(
      std::make_unique<program::TensorTypeT>(type));
  const auto executor = Load(loop);
  ASSERT_NE(executor, nullptr);
  ASSERT_TRUE(executor->EnableNanTrace().ok());
  const auto origin = [&](float x, bool a) {
    EXPECT_TRUE(Run(*executor, true, a, false, x).ok());
    const auto found = executor->FindNonFinite(executor->Outcome());
    return found ? found->text : "none";
  };
  EXPECT_THAT(origin(1e38f, true), testing::HasSubstr("made an infinite"));
  EXPECT_EQ(executor->Outcome(), NumberKind::kInfinite);
  EXPECT_THAT(origin(std::nanf(""), true),
              "input 'x' holds NaN before the step");
  EXPECT_TRUE(Run(*executor, true, false, false, 1e38f).ok());
  EXPECT_EQ(executor->Outcome(), NumberKind::kFinite);
}

// A device with memory of its own, as a GPU has.
class OwnMemoryDevice : public device::NullDevice {
 public:
  bool KeepsContent() const override { return true; }
};

TEST_F(LoopsTest, DevicesWithMemoryOfTheirOwnAreRefused) {
  const std::string path = folder_ + "/model.partita";
  ASSERT_TRUE(
      program::WriteArtifact(path, program::LoopProgram().Parts()).ok());
  OwnMemoryDevice device;
  EXPECT_THAT(std::string(Executor::Load(path, device).status().message()),
              testing::HasSubstr(
                  "expected a device that shares the host's memory, as the "
                  "host reads the condition of a loop whose number of "
                  "iterations depends on data; compile the model for cpu"));
}

TEST_F(LoopsTest, StatesInFilesAreRefused) {
  const std::string path = folder_ + "/model.partita";
  ASSERT_TRUE(
      program::WriteArtifact(path, program::LoopProgram().Parts()).ok());
  LoadOptions options;
  options.state_store.folder = folder_;
  EXPECT_THAT(
      std::string(Executor::Load(path, *cpu_, options).status().message()),
      testing::HasSubstr(
          "expected states in memory in a model with loops, found states in "
          "files; leave out --offload-dir, and offload: {optimizer: nvme}"));
}

}  // namespace
}  // namespace partita::executor
