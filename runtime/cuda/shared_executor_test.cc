// Whole programs whose ranks share a GPU that is recorded: what they exchange
// stays in its memory, and what they compute is what they compute when it goes
// through the host's, to the bit.
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/cuda_executor_testing.h"
#include "runtime/cuda/shared_gpu.h"
#include "runtime/program/test_pipeline_program.h"
#include "runtime/program/test_program.h"
#include "runtime/program/test_training_program.h"

namespace partita::cuda {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class SharedExecutorTest : public CudaExecutorTest {
 protected:
  SharedExecutorTest() { recording_.Watch(); }
  ~SharedExecutorTest() override { EXPECT_EQ(recording_.TakeRaces(), ""); }

  static std::shared_ptr<SharedGpu> Share(int ranks) {
    return MakeSharedGpu(ranks, {0, kLibrary, {std::chrono::seconds(60)}});
  }
  static size_t Count(const std::string& log, const std::string& call) {
    size_t count = 0;
    for (size_t at = 0; (at = log.find(call, at)) != std::string::npos; ++at)
      ++count;
    return count;
  }
};

// In place and started.
TEST_F(SharedExecutorTest, DividedProgramsExchangeOnTheGpu) {
  for (const auto& [data, tensor, starts] :
       {std::tuple(2, 1, false), std::tuple(1, 3, false),
        std::tuple(2, 2, false), std::tuple(2, 2, true),
        std::tuple(1, 2, true)}) {
    SCOPED_TRACE(::testing::Message() << data << "x" << tensor << starts);
    const int ranks = data * tensor;
    const auto make = [&, data = data, tensor = tensor, starts = starts] {
      program::DividedProgram divided(5, data, tensor);
      if (starts) divided.StartCollectives();
      return divided;
    };
    std::vector<Floats> results;
    for (const bool shares : {false, true}) {
      const auto runner = Load(make(), shares ? Share(ranks) : nullptr);
      ASSERT_NE(runner, nullptr);
      for (uint64_t run = 0; run < 3; ++run) {
        recording_.TakeLog();
        const Floats x = Seeded(40, 9 + run);
        Floats y(40, -1), all(40, -1);
        std::vector<int64_t> where(static_cast<size_t>(ranks), -1);
        const absl::Status status =
            runner->Run({{DType::kF32, {5, 8}, x.data()}},
                        {{DType::kF32, {5, 8}, y.data()},
                         {DType::kF32, {5, 8}, all.data()},
                         {DType::kI64, {ranks}, where.data()}});
        ASSERT_TRUE(status.ok()) << status;
        for (size_t i = 0; i < where.size(); ++i)
          EXPECT_EQ(where[i], static_cast<int64_t>(i));
        if (!shares) {
          results.push_back(y);
          results.push_back(all);
          continue;
        }
        EXPECT_EQ(y, results[2 * run]);
        EXPECT_EQ(all, results[2 * run + 1]);
        const std::string log = recording_.TakeLog();
        // The outputs of each rank, and its input.
        EXPECT_EQ(Count(log, "cuMemcpyDtoHAsync"),
                  static_cast<size_t>(3 * ranks));
        EXPECT_EQ(Count(log, "cuMemcpyHtoDAsync"), static_cast<size_t>(ranks));
        EXPECT_GE(Count(log, "partita_reduce_box"), 1u);
        EXPECT_THAT(log, Not(HasSubstr("Capture")));
      }
    }
  }
}

TEST_F(SharedExecutorTest, TrainsDividedOnTheGpu) {
  using program::TrainingProgram;
  constexpr int64_t kWidth = TrainingProgram::kWidth,
                    kOut = TrainingProgram::kOut;
  constexpr float kRate = 0.02f;
  const auto runner = Load(TrainingProgram(5, 2, 2), Share(4));
  ASSERT_NE(runner, nullptr);
  const Floats x = Seeded(5 * kWidth, 5), t = Seeded(5 * kOut, 6);
  Floats w = TrainingProgram::Start();
  for (int64_t step = 1; step <= 3; ++step) {
    float loss = -1;
    int64_t at = -1;
    const absl::Status status =
        runner->Run({{DType::kF32, {5, kWidth}, x.data()},
                     {DType::kF32, {5, kOut}, t.data()},
                     {DType::kF32, {}, &kRate},
                     {DType::kI64, {}, &step}},
                    {{DType::kF32, {}, &loss}, {DType::kI64, {}, &at}});
    ASSERT_TRUE(status.ok()) << status;
    const float expected = program::TrainingStep(x, t, kRate, w);
    EXPECT_NEAR(loss, expected, 1e-4 * expected);
    EXPECT_EQ(at, step);
    ExpectNear(w, Read(*runner, "w", kWidth, kOut));
  }
}

// Two stages of two ranks each: transfers run beside, timed and not.
TEST_F(SharedExecutorTest, StagesTransferOnTheGpu) {
  using program::PipelineProgram;
  constexpr int64_t kBatch = 8, kWidth = PipelineProgram::kWidth,
                    kHidden = PipelineProgram::kHidden,
                    kOut = PipelineProgram::kOut;
  constexpr float kRate = 0.001f;
  const auto runner = Load(PipelineProgram(kBatch, 2), Share(4));
  ASSERT_NE(runner, nullptr);
  const Floats x = Seeded(kBatch * kWidth, 7), t = Seeded(kBatch * kOut, 8);
  Floats w = PipelineProgram::StartOfW(), u = PipelineProgram::StartOfU();
  for (const bool profiled : {false, true}) {
    if (profiled) runner->EnableProfile();
    for (int64_t step = 1; step <= 3; ++step) {
      recording_.TakeLog();
      float loss = -1;
      int64_t at = -1;
      Floats y(static_cast<size_t>(kBatch * kOut), -1);
      const absl::Status status =
          runner->Run({{DType::kF32, {kBatch, kWidth}, x.data()},
                       {DType::kF32, {kBatch, kOut}, t.data()},
                       {DType::kF32, {}, &kRate},
                       {DType::kI64, {}, &step}},
                      {{DType::kF32, {}, &loss},
                       {DType::kI64, {}, &at},
                       {DType::kF32, {kBatch, kOut}, y.data()}});
      ASSERT_TRUE(status.ok()) << status;
      const auto expected = program::PipelineStep(x, t, kRate, w, u);
      EXPECT_NEAR(loss, expected.loss, 1e-4 * expected.loss);
      ExpectNear(expected.y, y);
      // Each half is copied to a slot and from there to where it is received.
      const std::string log = recording_.TakeLog();
      EXPECT_GE(Count(log, "cuMemcpyDtoDAsync"), 8u);
      EXPECT_GE(Count(log, "partita_copy_box"), 8u);
      EXPECT_THAT(log, Not(HasSubstr("Capture")));
      ExpectNear(w, Read(*runner, "w", kHidden, kOut));
      ExpectNear(u, Read(*runner, "u", kWidth, kHidden));
    }
  }
}

}  // namespace
}  // namespace partita::cuda
