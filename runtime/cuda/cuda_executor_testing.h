// Whole programs on GPUs that are recorded.
#ifndef PARTITA_RUNTIME_CUDA_CUDA_EXECUTOR_TESTING_H_
#define PARTITA_RUNTIME_CUDA_CUDA_EXECUTOR_TESTING_H_

#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/base/random_fill.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/recording/recording.h"
#include "runtime/cuda/shared_gpu.h"
#include "runtime/executor/multi_device.h"
#include "runtime/program/artifact.h"

namespace partita::cuda {

using base::DType;
using executor::MultiDeviceRunner;
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
  // All devices share one GPU, and exchange through the host's memory, or by
  // way of what `shared` is.
  template <typename Program>
  std::unique_ptr<MultiDeviceRunner> Load(
      Program program, std::shared_ptr<SharedGpu> shared = nullptr) {
    Write(std::move(program));
    executor::MultiDeviceOptions options;
    options.make_device = [](int) {
      return MakeCudaDevice({0, kLibrary, kLibrary, kLibrary});
    };
    if (shared != nullptr)
      options.make_communicator = [shared](comm::Communicator& base) {
        return MakeSharedCommunicator(shared, base);
      };
    auto runner = MultiDeviceRunner::Load(path_, options);
    EXPECT_TRUE(runner.ok()) << runner.status();
    return runner.ok() ? *std::move(runner) : nullptr;
  }
  static Floats Read(MultiDeviceRunner& runner, const std::string& name,
                     int64_t rows, int64_t columns) {
    Floats values(static_cast<size_t>(rows * columns), -99);
    const absl::Status status = runner.ReadParameter(
        name, {DType::kF32, {rows, columns}, values.data()});
    EXPECT_TRUE(status.ok()) << status;
    return values;
  }

  recording::Recording recording_;
  std::string folder_, path_;
};

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_CUDA_EXECUTOR_TESTING_H_
