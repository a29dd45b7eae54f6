// Whole programs whose ranks share a recorded GPU. Exchanged data stays in its
// memory, and results are bit-identical to an exchange through host memory.
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

// Collectives in place and started.
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
      const auto group = Load(make(), shares ? Share(ranks) : nullptr);
      ASSERT_NE(group, nullptr);
      for (uint64_t run = 0; run < 3; ++run) {
        recording_.TakeLog();
        const Floats x = Seeded(40, 9 + run);
        Floats y(40, -1), all(40, -1);
        std::vector<int64_t> where(static_cast<size_t>(ranks), -1);
        const absl::Status status =
            group->Run({{DType::kF32, {5, 8}, x.data()}},
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
        // Each rank downloads its three outputs and uploads its input.
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
  const auto group = Load(program::TrainingProgram(5, 2, 2), Share(4));
  ASSERT_NE(group, nullptr);
  Floats w = program::TrainingProgram::Start();
  TrainThreeSteps(*group, w);
}

// Two stages of two ranks each. Transfers run beside, with and without a
// profile.
TEST_F(SharedExecutorTest, StagesTransferOnTheGpu) {
  using program::PipelineProgram;
  const auto group = Load(PipelineProgram(kPipelineRows, 2), Share(4));
  ASSERT_NE(group, nullptr);
  Floats w = PipelineProgram::StartOfW(), u = PipelineProgram::StartOfU();
  for (const bool profiled : {false, true}) {
    if (profiled) group->EnableProfile();
    recording_.TakeLog();
    PipeThreeSteps(*group, w, u, [&] {
      // Each half is copied to a slot, and from there to its receiver.
      const std::string log = recording_.TakeLog();
      EXPECT_GE(Count(log, "cuMemcpyDtoDAsync"), 8u);
      EXPECT_GE(Count(log, "partita_copy_box"), 8u);
      EXPECT_THAT(log, Not(HasSubstr("Capture")));
    });
  }
}

// A launch of one rank fails in the middle of a step. The other ranks learn of
// it, and no rank's memory is freed while another's stream reads it.
TEST_F(SharedExecutorTest, ARankThatFailsInAStepIsNamed) {
  for (const bool starts : {false, true})
    for (const int after : {0, 2, 5, 9}) {
      SCOPED_TRACE(::testing::Message() << starts << " " << after);
      program::DividedProgram divided(5, 2, 2);
      if (starts) divided.StartCollectives();
      auto group = Load(std::move(divided), Share(4));
      ASSERT_NE(group, nullptr);
      const Floats x = Seeded(40, 9);
      Floats y(40, -1), all(40, -1);
      std::vector<int64_t> where(4, -1);
      const auto run = [&] {
        return group->Run({{DType::kF32, {5, 8}, x.data()}},
                          {{DType::kF32, {5, 8}, y.data()},
                           {DType::kF32, {5, 8}, all.data()},
                           {DType::kI64, {4}, where.data()}});
      };
      ASSERT_TRUE(run().ok());
      const auto begin = std::chrono::steady_clock::now();
      recording_.FailNext("cuLaunchKernel", kCuIllegalAddress, 1, after);
      const std::string text(run().message());
      EXPECT_THAT(text, ::testing::ContainsRegex("rank [0-3]: .*"
                                                 "CUDA_ERROR_ILLEGAL_ADDRESS"));
      group.reset();
      EXPECT_EQ(recording_.TakeRaces(), "");
      EXPECT_LT(std::chrono::steady_clock::now() - begin,
                std::chrono::seconds(20));
    }
}

}  // namespace
}  // namespace partita::cuda
