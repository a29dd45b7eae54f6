// Test fixture that runs whole programs on recorded GPUs.
#ifndef PARTITA_RUNTIME_CUDA_CUDA_EXECUTOR_TESTING_H_
#define PARTITA_RUNTIME_CUDA_CUDA_EXECUTOR_TESTING_H_

#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/base/random_fill.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/recording/recording.h"
#include "runtime/cuda/shared_gpu.h"
#include "runtime/executor/rank_group.h"
#include "runtime/program/artifact.h"
#include "runtime/program/test_pipeline_program.h"
#include "runtime/program/test_training_program.h"

namespace partita::cuda {

using base::DType;
using executor::RankGroup;
using Floats = std::vector<float>;

constexpr char kLibrary[] = "runtime/cuda/recording/librecording.so";
constexpr char kTarget[] = "cuda:sm_80";

inline Floats Seeded(int64_t count, uint64_t seed) {
  Floats values(static_cast<size_t>(count));
  EXPECT_TRUE(base::FillElements({"uniform", 1.0, seed}, DType::kF32, 0, count,
                                 values.data())
                  .ok());
  return values;
}

inline void ExpectNear(const Floats& expected, const Floats& found) {
  ASSERT_EQ(expected.size(), found.size());
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(expected[i], found[i], 1e-4) << i;
}

class CudaExecutorTest : public ::testing::Test {
 protected:
  CudaExecutorTest() : recording_(kLibrary) {
    folder_ = ::testing::TempDir() + "/cuda_XXXXXX";
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    path_ = folder_ + "/model.partita";
  }
  ~CudaExecutorTest() override {
    std::filesystem::remove_all(folder_);
    EXPECT_EQ(recording_.UsedBytes(), 0u);
  }

  template <typename Program>
  void Write(Program program) {
    program.program.target = kTarget;
    const absl::Status status = program::WriteArtifact(path_, program.Parts());
    ASSERT_TRUE(status.ok()) << status;
  }
  // Loads a program. All devices share one GPU and exchange through host
  // memory, or through `shared` if it is not null.
  template <typename Program>
  std::unique_ptr<RankGroup> Load(Program program,
                                  std::shared_ptr<SharedGpu> shared = nullptr) {
    Write(std::move(program));
    executor::GroupOptions options;
    options.make_device = [](int) {
      return MakeCudaDevice({0, kLibrary, kLibrary, kLibrary});
    };
    if (shared != nullptr)
      options.make_communicator = [shared](int, comm::Communicator& base) {
        return MakeSharedCommunicator(shared, base);
      };
    auto ranks = RankGroup::LoadAll(path_, options);
    EXPECT_TRUE(ranks.ok()) << ranks.status();
    return ranks.ok() ? *std::move(ranks) : nullptr;
  }
  static Floats Read(RankGroup& ranks, const std::string& name, int64_t rows,
                     int64_t columns) {
    Floats values(static_cast<size_t>(rows * columns), -99);
    const absl::Status status = ranks.ReadParameter(
        name, {DType::kF32, {rows, columns}, values.data()});
    EXPECT_TRUE(status.ok()) << status;
    return values;
  }

  // Runs three steps of a TrainingProgram of five rows with weights `w`, and
  // checks them.
  static void TrainThreeSteps(RankGroup& ranks, Floats& w) {
    using program::TrainingProgram;
    constexpr int64_t kRows = 5, kWidth = TrainingProgram::kWidth,
                      kOut = TrainingProgram::kOut;
    constexpr float kRate = 0.02f;
    const Floats x = Seeded(kRows * kWidth, 5), t = Seeded(kRows * kOut, 6);
    for (int64_t step = 1; step <= 3; ++step) {
      float loss = -1;
      int64_t at = -1;
      const absl::Status status =
          ranks.Run({{DType::kF32, {kRows, kWidth}, x.data()},
                     {DType::kF32, {kRows, kOut}, t.data()},
                     {DType::kF32, {}, &kRate},
                     {DType::kI64, {}, &step}},
                    {{DType::kF32, {}, &loss}, {DType::kI64, {}, &at}});
      ASSERT_TRUE(status.ok()) << status;
      const float expected = program::TrainingStep(x, t, kRate, w);
      EXPECT_NEAR(loss, expected, 1e-4 * expected);
      EXPECT_EQ(at, step);
      ExpectNear(w, Read(ranks, "w", kWidth, kOut));
    }
  }
  // Runs three steps of a PipelineProgram of kPipelineRows with weights `w` and
  // `u`, and checks them. Calls `after` after each step, before reading
  // anything.
  static constexpr int64_t kPipelineRows = 8;
  static void PipeThreeSteps(
      RankGroup& ranks, Floats& w, Floats& u,
      const std::function<void()>& after = [] {}) {
    using program::PipelineProgram;
    constexpr int64_t kRows = kPipelineRows, kWidth = PipelineProgram::kWidth,
                      kHidden = PipelineProgram::kHidden,
                      kOut = PipelineProgram::kOut;
    constexpr float kRate = 0.001f;
    const Floats x = Seeded(kRows * kWidth, 7), t = Seeded(kRows * kOut, 8);
    for (int64_t step = 1; step <= 3; ++step) {
      float loss = -1;
      int64_t at = -1;
      Floats y(static_cast<size_t>(kRows * kOut), -1);
      const absl::Status status =
          ranks.Run({{DType::kF32, {kRows, kWidth}, x.data()},
                     {DType::kF32, {kRows, kOut}, t.data()},
                     {DType::kF32, {}, &kRate},
                     {DType::kI64, {}, &step}},
                    {{DType::kF32, {}, &loss},
                     {DType::kI64, {}, &at},
                     {DType::kF32, {kRows, kOut}, y.data()}});
      ASSERT_TRUE(status.ok()) << status;
      after();
      const auto expected = program::PipelineStep(x, t, kRate, w, u);
      EXPECT_NEAR(loss, expected.loss, 1e-4 * expected.loss);
      EXPECT_EQ(at, step);
      ExpectNear(expected.y, y);
      ExpectNear(w, Read(ranks, "w", kHidden, kOut));
      ExpectNear(u, Read(ranks, "u", kWidth, kHidden));
    }
  }

  recording::Recording recording_;
  std::string folder_, path_;
};

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_CUDA_EXECUTOR_TESTING_H_
