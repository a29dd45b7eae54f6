// Training on a recorded GPU that uploads the next batch while a step runs, on
// one device and on several devices that hold blocks of the batch.
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/cuda_executor_testing.h"
#include "runtime/executor/executor.h"
#include "runtime/executor/uploads.h"
#include "runtime/program/test_training_program.h"

namespace partita::cuda {
namespace {

using executor::ConstTensor;
using program::TrainingProgram;
using ::testing::HasSubstr;

constexpr int64_t kWidth = TrainingProgram::kWidth,
                  kOut = TrainingProgram::kOut;
constexpr float kRate = 0.02f;

class PrefetchTest : public CudaExecutorTest {
 protected:
  struct Batch {
    explicit Batch(uint64_t seed)
        : x(Seeded(5 * kWidth, 2 * seed)), t(Seeded(5 * kOut, 2 * seed + 1)) {}
    Floats x, t;
  };

  PrefetchTest() { recording_.Watch(); }
  ~PrefetchTest() override { EXPECT_EQ(recording_.TakeRaces(), ""); }

  static std::vector<ConstTensor> Inputs(const Batch& batch, const float* rate,
                                         const int64_t* step) {
    return {{DType::kF32, {5, kWidth}, batch.x.data()},
            {DType::kF32, {5, kOut}, batch.t.data()},
            {DType::kF32, {}, rate},
            {DType::kI64, {}, step}};
  }
  static std::vector<ConstTensor> Ahead(const Batch& batch) {
    return Inputs(batch, nullptr, nullptr);
  }
  // Position of the last `line` in the log.
  static size_t LastOf(const std::string& log, const std::string& line) {
    return log.rfind(line + "\n");
  }
  static size_t Count(const std::string& log, const std::string& line) {
    size_t count = 0;
    for (size_t at = 0; (at = log.find(line + "\n", at)) != std::string::npos;
         ++at)
      ++count;
    return count;
  }
};

// Only events order the two streams; the host waits for neither.
TEST_F(PrefetchTest, WhatIsTakenIsNotWrittenBefore) {
  const auto device = std::move(MakeCudaDevice({0, kLibrary, "none"})).value();
  const auto stream = std::move(device->CreateStream()).value();
  const auto uploads =
      std::move(executor::Uploads::Make(*device, {64})).value();
  EXPECT_EQ(uploads->bytes(), 64);
  const auto memory =
      std::move(device::Allocation::Make(*device, 4 * 64)).value();
  std::vector<Floats> hosts;
  for (uint64_t i = 0; i < 4; ++i) hosts.push_back(Seeded(16, i));
  for (size_t i = 0; i < 4; ++i) {
    const ConstTensor input = {DType::kF32, {16}, hosts[i].data()};
    ASSERT_TRUE(uploads->Begin({input}).ok());
    char* const target = memory.data() + 64 * i;
    EXPECT_FALSE(*uploads->Take(*stream, 0, hosts[(i + 1) % 4].data(), target));
    EXPECT_TRUE(*uploads->Take(*stream, 0, hosts[i].data(), target));
    ASSERT_TRUE(uploads->End(*stream).ok());
    // After a run, taken and untaken uploads are gone.
    EXPECT_FALSE(*uploads->Take(*stream, 0, hosts[i].data(), target));
  }
  for (size_t i = 0; i < 4; ++i) {
    Floats found(16, -1);
    ASSERT_TRUE(
        device->CopyToHost(*stream, found.data(), memory.data() + 64 * i, 64)
            .ok());
    EXPECT_EQ(found, hosts[i]);
  }
}

// A step uploads the next step's batch if Prefetch announced it.
TEST_F(PrefetchTest, TheNextBatchIsUploadedWhileAStepRuns) {
  constexpr char kUpload[] = "cuMemcpyHtoDAsync_v2 120",
                 kTake[] = "cuMemcpyDtoDAsync_v2 120";
  for (const char* graphs : {"0", "1"}) {
    SCOPED_TRACE(graphs);
    setenv("PARTITA_CUDA_GRAPHS", graphs, 1);
    Write(TrainingProgram(5, 1, 1));
    const auto device =
        std::move(MakeCudaDevice({0, kLibrary, kLibrary, kLibrary})).value();
    unsetenv("PARTITA_CUDA_GRAPHS");
    auto executor = executor::Executor::Load(path_, *device);
    ASSERT_TRUE(executor.ok()) << executor.status();
    ASSERT_TRUE((*executor)->LooksAhead());
    const int64_t staging = (*executor)->Memory().staging;
    Floats w = TrainingProgram::Start();
    std::vector<std::unique_ptr<Batch>> batches;
    for (uint64_t i = 0; i < 7; ++i)
      batches.push_back(std::make_unique<Batch>(i));
    for (int64_t step = 1; step <= 6; ++step) {
      SCOPED_TRACE(step);
      // The third step gets a batch that was not announced; for the fourth step
      // none was announced.
      Batch& batch = *batches[static_cast<size_t>(step == 3 ? 0 : step)];
      const bool told = step != 1 && step != 3 && step != 4;
      const bool tells = step < 6 && step != 3;
      if (tells) {
        const Batch& next = *batches[static_cast<size_t>(step + 1)];
        ASSERT_TRUE((*executor)->Prefetch([&] { return Ahead(next); }).ok());
      }
      recording_.TakeLog();
      float loss = -1;
      int64_t at = -1;
      const absl::Status status =
          (*executor)->Run(Inputs(batch, &kRate, &step),
                           {{DType::kF32, {}, &loss}, {DType::kI64, {}, &at}});
      ASSERT_TRUE(status.ok()) << status;
      const std::string log = recording_.TakeLog();
      const float expected = program::TrainingStep(batch.x, batch.t, kRate, w);
      EXPECT_NEAR(loss, expected, 1e-4 * expected);
      EXPECT_EQ(at, step);
      EXPECT_EQ(Count(log, kTake), told ? 1u : 0u) << log;
      EXPECT_EQ(Count(log, kUpload), (told ? 0u : 1u) + (tells ? 1u : 0u));
      // The upload is on its stream before the host waits for the step's
      // outputs. In a captured step it comes after the replay.
      if (tells) {
        const size_t upload = LastOf(log, kUpload);
        EXPECT_LT(upload, log.find("cuMemcpyDtoHAsync")) << log;
        if (*graphs == '1' && step > 2)
          EXPECT_LT(LastOf(log, "cuGraphLaunch"), upload);
      }
      // The caller may overwrite its batch now.
      batch.x.assign(batch.x.size(), -1000);
      batch.t.assign(batch.t.size(), -1000);
      if (step == 3) *batches[0] = Batch(8);
    }
    EXPECT_EQ((*executor)->Memory().staging, staging + 5 * (kWidth + kOut) * 4);
  }
}

// Devices upload rows of x and columns of t, which the host gathers first.
// Exchange goes through host memory and through GPU memory.
TEST_F(PrefetchTest, DevicesUploadTheirBlocks) {
  for (const bool shares : {false, true}) {
    SCOPED_TRACE(shares);
    const auto ranks = Load(
        TrainingProgram(5, 2, 2),
        shares ? MakeSharedGpu(4, {0, kLibrary, {std::chrono::seconds(60)}})
               : nullptr);
    ASSERT_NE(ranks, nullptr);
    ASSERT_TRUE(ranks->LooksAhead());
    Floats w = TrainingProgram::Start();
    Batch now(1), next(2);
    for (int64_t step = 1; step <= 5; ++step) {
      ranks->Prefetch(Ahead(next));
      recording_.TakeLog();
      float loss = -1;
      int64_t at = -1;
      const absl::Status status =
          ranks->Run(Inputs(now, &kRate, &step),
                     {{DType::kF32, {}, &loss}, {DType::kI64, {}, &at}});
      ASSERT_TRUE(status.ok()) << status;
      // Each of the four devices takes its blocks of both tensors from the
      // upload.
      const std::string log = recording_.TakeLog();
      size_t taken = 0;
      for (size_t i = 0; (i = log.find("cuMemcpyDtoD", i)) != std::string::npos;
           ++i)
        ++taken;
      if (step > 1) {
        EXPECT_GE(taken, 8u) << log;
      }
      const float expected = program::TrainingStep(now.x, now.t, kRate, w);
      EXPECT_NEAR(loss, expected, 1e-4 * expected);
      ExpectNear(w, Read(*ranks, "w", kWidth, kOut));
      // This batch's memory is reused for the batch after the next.
      std::swap(now, next);
      const Batch fresh(static_cast<uint64_t>(step) + 2);
      std::copy(fresh.x.begin(), fresh.x.end(), next.x.begin());
      std::copy(fresh.t.begin(), fresh.t.end(), next.t.begin());
    }
  }
}

// Memory runs out when it is allocated for the next batch, or an upload fails
// halfway. Every step still gets its own batch.
TEST_F(PrefetchTest, StepsGoOnWhereThereIsNoMemoryForTheNextBatch) {
  struct Case {
    const char* call;
    int after;  // number of calls that succeed first
  };
  // A run uploads its four inputs before the next two.
  for (const Case& fails :
       {Case{"cuMemAlloc_v2", 0}, Case{"cuMemAlloc_v2", 1},
        Case{"cuMemcpyHtoDAsync_v2", 4}, Case{"cuMemcpyHtoDAsync_v2", 5}}) {
    SCOPED_TRACE(::testing::Message() << fails.call << " " << fails.after);
    Write(TrainingProgram(5, 1, 1));
    const auto device =
        std::move(MakeCudaDevice({0, kLibrary, kLibrary, kLibrary})).value();
    auto executor = executor::Executor::Load(path_, *device);
    ASSERT_TRUE(executor.ok()) << executor.status();
    const int64_t staging = (*executor)->Memory().staging;
    EXPECT_EQ((*executor)->not_ahead(), "");
    recording_.FailNext(fails.call, kCuOutOfMemory, 1, fails.after);
    Floats w = TrainingProgram::Start();
    for (int64_t step = 1; step <= 4; ++step) {
      const Batch batch(static_cast<uint64_t>(step)),
          next(static_cast<uint64_t>(step) + 1);
      ASSERT_TRUE((*executor)->Prefetch([&] { return Ahead(next); }).ok());
      float loss = -1;
      int64_t at = -1;
      const absl::Status status =
          (*executor)->Run(Inputs(batch, &kRate, &step),
                           {{DType::kF32, {}, &loss}, {DType::kI64, {}, &at}});
      ASSERT_TRUE(status.ok()) << status;
      const float expected = program::TrainingStep(batch.x, batch.t, kRate, w);
      EXPECT_NEAR(loss, expected, 1e-4 * expected);
      EXPECT_THAT((*executor)->not_ahead(),
                  HasSubstr("CUDA_ERROR_OUT_OF_MEMORY"));
    }
    EXPECT_EQ((*executor)->Memory().staging, staging);
  }
}

// One of four devices has no memory for its blocks.
TEST_F(PrefetchTest, OneDeviceWithoutMemoryIsNamed) {
  const auto ranks = Load(TrainingProgram(5, 2, 2));
  ASSERT_NE(ranks, nullptr);
  EXPECT_EQ(ranks->NotAhead(), "");
  recording_.FailNext("cuMemAlloc_v2", kCuOutOfMemory);
  Floats w = TrainingProgram::Start();
  for (int64_t step = 1; step <= 3; ++step) {
    const Batch batch(static_cast<uint64_t>(step)),
        next(static_cast<uint64_t>(step) + 1);
    ranks->Prefetch(Ahead(next));
    float loss = -1;
    int64_t at = -1;
    const absl::Status status =
        ranks->Run(Inputs(batch, &kRate, &step),
                   {{DType::kF32, {}, &loss}, {DType::kI64, {}, &at}});
    ASSERT_TRUE(status.ok()) << status;
    const float expected = program::TrainingStep(batch.x, batch.t, kRate, w);
    EXPECT_NEAR(loss, expected, 1e-4 * expected);
    EXPECT_THAT(
        ranks->NotAhead(),
        ::testing::ContainsRegex("^rank [0-3]: .*CUDA_ERROR_OUT_OF_MEMORY"));
  }
}

// An error in providing the next batch is an error of the run.
TEST_F(PrefetchTest, ErrorsOfTheNextBatchEndTheRun) {
  Write(TrainingProgram(5, 1, 1));
  const auto device =
      std::move(MakeCudaDevice({0, kLibrary, kLibrary, kLibrary})).value();
  auto executor = executor::Executor::Load(path_, *device);
  ASSERT_TRUE(executor.ok()) << executor.status();
  ASSERT_TRUE((*executor)
                  ->Prefetch([]() -> absl::StatusOr<std::vector<ConstTensor>> {
                    return absl::DataLossError("it is cut off");
                  })
                  .ok());
  const Batch batch(1);
  const int64_t step = 1;
  float loss = -1;
  int64_t at = -1;
  EXPECT_THAT(
      std::string((*executor)
                      ->Run(Inputs(batch, &kRate, &step),
                            {{DType::kF32, {}, &loss}, {DType::kI64, {}, &at}})
                      .message()),
      HasSubstr("it is cut off"));
}

}  // namespace
}  // namespace partita::cuda
