// Programs that update parameters: values persist between steps, are in memory
// of their own, and can be read and replaced between runs.
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/random_fill.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/executor/executor.h"
#include "runtime/executor/rank_group.h"
#include "runtime/program/test_program.h"
#include "runtime/program/test_training_program.h"

namespace partita::executor {
namespace {

using base::DType;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Floats = std::vector<float>;
constexpr int64_t kBatch = 5, kWidth = program::TrainingProgram::kWidth,
                  kOut = program::TrainingProgram::kOut;
constexpr float kRate = 0.02f;

Floats Seeded(int64_t count, uint64_t seed) {
  Floats values(static_cast<size_t>(count));
  EXPECT_TRUE(base::FillElements({"uniform", 1.0, seed}, DType::kF32, 0, count,
                                 values.data())
                  .ok());
  return values;
}

void ExpectNear(const Floats& expected, const Floats& found) {
  ASSERT_EQ(expected.size(), found.size());
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], 2e-5) << i;
}

class TrainingTest : public ::testing::Test {
 protected:
  TrainingTest() : cpu_(std::move(cpu::MakeCpuDevice({1})).value()) {
    folder_ = ::testing::TempDir() + "/training_XXXXXX";
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    path_ = folder_ + "/model.partita";
  }
  ~TrainingTest() override { std::filesystem::remove_all(folder_); }

  void Write(const program::TrainingProgram& training) {
    const absl::Status status = program::WriteArtifact(path_, training.Parts());
    ASSERT_TRUE(status.ok()) << status;
  }
  std::unique_ptr<Executor> Load() {
    auto executor = Executor::Load(path_, *cpu_);
    EXPECT_TRUE(executor.ok()) << executor.status();
    return executor.ok() ? std::move(*executor) : nullptr;
  }
  std::unique_ptr<RankGroup> LoadDivided() {
    GroupOptions options;
    options.make_device = [](int) { return cpu::MakeCpuDevice({1}); };
    auto ranks = RankGroup::LoadAll(path_, options);
    EXPECT_TRUE(ranks.ok()) << ranks.status();
    return ranks.ok() ? std::move(*ranks) : nullptr;
  }

  // Runs one step; returns the loss.
  template <typename Runner>
  float Step(Runner& ranks) {
    const int64_t step = ++steps_;
    float loss = -1;
    int64_t at = -1;
    const absl::Status status =
        ranks.Run({{DType::kF32, {kBatch, kWidth}, x_.data()},
                   {DType::kF32, {kBatch, kOut}, t_.data()},
                   {DType::kF32, {}, &kRate},
                   {DType::kI64, {}, &step}},
                  {{DType::kF32, {}, &loss}, {DType::kI64, {}, &at}});
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(at, step);
    return loss;
  }
  template <typename Runner>
  static Floats Read(Runner& ranks, const std::string& name,
                     std::vector<int64_t> shape) {
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    Floats values(static_cast<size_t>(count), -99);
    const absl::Status status = ranks.ReadParameter(
        name, {DType::kF32, std::move(shape), values.data()});
    EXPECT_TRUE(status.ok()) << status;
    return values;
  }
  // Four steps, a rewind to the beginning, and one more.
  template <typename Runner>
  void ExpectTrains(Runner& ranks) {
    steps_ = 0;
    const Floats start = Seeded(kWidth * kOut, 1);
    Floats w = start;
    EXPECT_EQ(Read(ranks, "w", {kWidth, kOut}), start);
    for (int step = 1; step <= 4; ++step) {
      const float expected = program::TrainingStep(x_, t_, kRate, w);
      EXPECT_NEAR(Step(ranks), expected, 1e-4 * expected);
      ExpectNear(w, Read(ranks, "w", {kWidth, kOut}));
      EXPECT_THAT(Read(ranks, "count", {}), ElementsAre(step));
    }
    const float count = 10;
    ASSERT_TRUE(ranks.WriteParameter("count", {DType::kF32, {}, &count}).ok());
    ASSERT_TRUE(
        ranks.WriteParameter("w", {DType::kF32, {kWidth, kOut}, start.data()})
            .ok());
    w = start;
    const float expected = program::TrainingStep(x_, t_, kRate, w);
    EXPECT_NEAR(Step(ranks), expected, 1e-4 * expected);
    ExpectNear(w, Read(ranks, "w", {kWidth, kOut}));
    EXPECT_THAT(Read(ranks, "count", {}), ElementsAre(11));
    EXPECT_EQ(Read(ranks, "f", {kWidth, kWidth})[5],
              program::TrainingProgram::Frozen(5));
  }

  const Floats x_ = Seeded(kBatch * kWidth, 7), t_ = Seeded(kBatch * kOut, 8);
  int64_t steps_ = 0;
  std::unique_ptr<device::Device> cpu_;
  std::string folder_, path_;
};

TEST_F(TrainingTest, OneDevice) {
  Write(program::TrainingProgram(kBatch, 1, 1));
  const std::unique_ptr<Executor> executor = Load();
  ASSERT_NE(executor, nullptr);
  ExpectTrains(*executor);
}

TEST_F(TrainingTest, EveryMesh) {
  for (const auto& [data, tensor] :
       {std::pair(2, 1), std::pair(1, 2), std::pair(2, 2), std::pair(3, 1),
        std::pair(1, 3), std::pair(1, 8)}) {
    SCOPED_TRACE(testing::Message() << data << "x" << tensor);
    Write(program::TrainingProgram(kBatch, data, tensor));
    const std::unique_ptr<RankGroup> ranks = LoadDivided();
    ASSERT_NE(ranks, nullptr);
    ExpectTrains(*ranks);
  }
}

TEST_F(TrainingTest, SameStepsSameBits) {
  Write(program::TrainingProgram(kBatch, 2, 2));
  Floats first;
  for (int run = 0; run < 2; ++run) {
    const std::unique_ptr<RankGroup> ranks = LoadDivided();
    ASSERT_NE(ranks, nullptr);
    for (int step = 0; step < 3; ++step) Step(*ranks);
    const Floats w = Read(*ranks, "w", {kWidth, kOut});
    if (run == 1) EXPECT_EQ(w, first);
    first = w;
  }
}

TEST_F(TrainingTest, UpdatedParametersAreNeverMapped) {
  const Floats start = Seeded(kWidth * kOut, 1);
  std::ofstream(folder_ + "/weights.bin", std::ios::binary)
      << std::string(reinterpret_cast<const char*>(start.data()),
                     start.size() * sizeof(float));
  program::TrainingProgram training(kBatch, 1, 1);
  training.program.parameters[0] =
      program::MakeFromFile("w", program::DType::f32, {kWidth, kOut},
                            "weights.bin", 0, program::DType::f32);
  Write(training);
  const std::unique_ptr<Executor> executor = Load();
  ASSERT_NE(executor, nullptr);
  EXPECT_EQ(executor->Memory().mapped, kWidth * kWidth * 4);
  EXPECT_EQ(executor->Memory().globals, kWidth * kOut * 4 + 4);
  ExpectTrains(*executor);
}

TEST_F(TrainingTest, StatesOnTheHostAreCountedApart) {
  program::TrainingProgram training(kBatch, 1, 1);
  Write(training);
  MemoryUse without;
  {
    const std::unique_ptr<Executor> executor = Load();
    ASSERT_NE(executor, nullptr);
    without = executor->Memory();
  }
  EXPECT_EQ(without.host, 0);
  training.program.parameters[1]->host = true;
  Write(training);
  const std::unique_ptr<Executor> executor = Load();
  ASSERT_NE(executor, nullptr);
  EXPECT_EQ(executor->Memory().host, 4);
  EXPECT_EQ(executor->Memory().globals, without.globals - 4);
  ExpectTrains(*executor);
}

TEST_F(TrainingTest, FrozenParametersAreReadWhereverTheyAre) {
  program::TrainingProgram training(kBatch, 1, 1);
  training.program.parameters[2] = program::MakeSeeded(
      "f", program::DType::f32, {kWidth, kWidth}, "uniform", 3);
  Write(training);
  const std::unique_ptr<Executor> executor = Load();
  ASSERT_NE(executor, nullptr);
  const int64_t before = executor->Memory().globals;
  EXPECT_EQ(Read(*executor, "f", {kWidth, kWidth}), Seeded(kWidth * kWidth, 3));
  EXPECT_EQ(executor->Memory().globals, before);
}

TEST_F(TrainingTest, ParametersAreListed) {
  Write(program::TrainingProgram(kBatch, 1, 2));
  const std::unique_ptr<RankGroup> ranks = LoadDivided();
  ASSERT_NE(ranks, nullptr);
  ASSERT_EQ(ranks->parameters().size(), 3u);
  const ParameterSpec& w = ranks->parameters()[0];
  EXPECT_EQ(w.whole.name, "w");
  EXPECT_THAT(w.whole.shape, ElementsAre(kWidth, kOut));
  EXPECT_THAT(w.local.shape, ElementsAre(kWidth, 4));
  EXPECT_EQ(w.whole.bytes, kWidth * kOut * 4);
  EXPECT_TRUE(w.updated);
  EXPECT_EQ(w.kind, program::ParameterKind::parameter);
  EXPECT_EQ(ranks->parameters()[1].kind, program::ParameterKind::state);
  EXPECT_FALSE(ranks->parameters()[2].updated);
}

template <typename Runner>
void ExpectRefusals(Runner& ranks) {
  float values[kWidth * kWidth] = {};
  EXPECT_EQ(ranks.ReadParameter("v", {DType::kF32, {}, values}).message(),
            "the program has no parameter 'v'");
  EXPECT_EQ(ranks.ReadParameter("w", {DType::kF32, {3}, values}).message(),
            "parameter 'w': expected f32[6,7], found f32[3]");
  EXPECT_EQ(ranks.WriteParameter("count", {DType::kI64, {}, values}).message(),
            "parameter 'count': expected f32[], found i64[]");
  EXPECT_EQ(ranks.WriteParameter("count", {DType::kF32, {}, nullptr}).message(),
            "parameter 'count': it has no data");
  EXPECT_THAT(
      std::string(
          ranks.WriteParameter("f", {DType::kF32, {kWidth, kWidth}, values})
              .message()),
      HasSubstr("parameter 'f': the program does not update it"));
}

TEST_F(TrainingTest, Refusals) {
  Write(program::TrainingProgram(kBatch, 1, 1));
  const std::unique_ptr<Executor> executor = Load();
  ASSERT_NE(executor, nullptr);
  ExpectRefusals(*executor);
  Write(program::TrainingProgram(kBatch, 2, 1));
  const std::unique_ptr<RankGroup> ranks = LoadDivided();
  ASSERT_NE(ranks, nullptr);
  ExpectRefusals(*ranks);
  // The ranks still work after the errors above.
  ExpectTrains(*ranks);
}

}  // namespace
}  // namespace partita::executor
