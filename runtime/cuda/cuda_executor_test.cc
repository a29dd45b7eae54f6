// Whole programs on recorded GPUs: weights, init, steps, ports, collectives and
// transfers of devices with separate memory.
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/cuda_executor_testing.h"
#include "runtime/executor/executor.h"
#include "runtime/executor/rank_group.h"
#include "runtime/program/test_pipeline_program.h"
#include "runtime/program/test_program.h"
#include "runtime/program/test_training_program.h"

namespace partita::cuda {
namespace {

// Computes relu(x w + b) for 8 columns.
Floats Layer(const Floats& x, const Floats& w, const Floats& b) {
  Floats y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    float sum = b[i % 8];
    for (size_t k = 0; k < 8; ++k) sum += x[i / 8 * 8 + k] * w[k * 8 + i % 8];
    y[i] = std::max(sum, 0.0f);
  }
  return y;
}

TEST_F(CudaExecutorTest, WeightsInitConstantsAndPorts) {
  Write(program::SampleProgram());
  const auto device =
      std::move(MakeCudaDevice({0, kLibrary, kLibrary, kLibrary})).value();
  auto executor = executor::Executor::Load(path_, *device);
  ASSERT_TRUE(executor.ok()) << executor.status();
  const Floats x = Seeded(32, 7), image = Seeded(256, 8);
  Floats y(32), z(256);
  std::vector<int64_t> k(8);
  for (int run = 0; run < 2; ++run) {
    std::vector<executor::ConstTensor> inputs;
    for (const auto& spec : (*executor)->inputs())
      inputs.push_back(
          {spec.dtype, spec.shape, spec.name == "x" ? x.data() : image.data()});
    std::vector<executor::MutableTensor> outputs;
    for (const auto& spec : (*executor)->outputs())
      outputs.push_back({spec.dtype, spec.shape,
                         spec.name == "y"   ? static_cast<void*>(y.data())
                         : spec.name == "z" ? static_cast<void*>(z.data())
                                            : static_cast<void*>(k.data())});
    const absl::Status status = (*executor)->Run(inputs, outputs);
    ASSERT_TRUE(status.ok()) << status;
  }
  Floats b(8);
  for (size_t i = 0; i < 8; ++i) b[i] = static_cast<float>(i) + 0.5f;
  const Floats w0 = Seeded(64, 1), w1 = Seeded(64, 2);
  Floats derived(64);
  for (size_t i = 0; i < 8; ++i) {
    const Floats row(w0.begin() + static_cast<std::ptrdiff_t>(i * 8),
                     w0.begin() + static_cast<std::ptrdiff_t>(i * 8 + 8));
    const Floats made = Layer(row, w1, b);
    std::copy(made.begin(), made.end(),
              derived.begin() + static_cast<std::ptrdiff_t>(i * 8));
  }
  ExpectNear(Layer(Layer(x, w0, b), derived, b), y);
  EXPECT_EQ(k, (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  // Checks the middle of the first channel.
  const Floats c = Seeded(144, 3);
  float sum = 0;
  for (size_t channel = 0; channel < 4; ++channel)
    for (size_t i = 0; i < 9; ++i)
      sum += image[channel * 64 + (3 + i / 3) * 8 + 3 + i % 3] *
             c[channel * 9 + i];
  EXPECT_NEAR(z[4 * 8 + 4], sum, 1e-4);
}

// Output y of the sample program for x and an image of ones.
Floats RunSample(executor::Executor& executor, const Floats& x) {
  const Floats image(256, 1);
  Floats y(32, -1), z(256);
  std::vector<int64_t> k(8);
  std::vector<executor::ConstTensor> inputs;
  for (const auto& spec : executor.inputs())
    inputs.push_back(
        {spec.dtype, spec.shape, spec.name == "x" ? x.data() : image.data()});
  std::vector<executor::MutableTensor> outputs;
  for (const auto& spec : executor.outputs())
    outputs.push_back({spec.dtype, spec.shape,
                       spec.name == "y"   ? static_cast<void*>(y.data())
                       : spec.name == "z" ? static_cast<void*>(z.data())
                                          : static_cast<void*>(k.data())});
  const absl::Status status = executor.Run(inputs, outputs);
  EXPECT_TRUE(status.ok()) << status;
  return y;
}

// Runs the program without graphs, then with them, and compares.
TEST_F(CudaExecutorTest, StepsAreCapturedAndReplayed) {
  Write(program::SampleProgram());
  std::vector<Floats> expected;
  for (const char* graphs : {"0", "1"}) {
    SCOPED_TRACE(graphs);
    setenv("PARTITA_CUDA_GRAPHS", graphs, 1);
    const auto device =
        std::move(MakeCudaDevice({0, kLibrary, kLibrary, kLibrary})).value();
    unsetenv("PARTITA_CUDA_GRAPHS");
    auto executor = executor::Executor::Load(path_, *device);
    ASSERT_TRUE(executor.ok()) << executor.status();
    for (uint64_t run = 0; run < 5; ++run) {
      recording_.TakeLog();
      const Floats y = RunSample(**executor, Seeded(32, 20 + run));
      const std::string log = recording_.TakeLog();
      const bool launches = log.find("cublasLtMatmul") != std::string::npos;
      const bool captures =
          log.find("cuStreamBeginCapture") != std::string::npos;
      const bool replays = log.find("cuGraphLaunch") != std::string::npos;
      if (*graphs == '0') {
        expected.push_back(y);
        EXPECT_TRUE(launches && !captures && !replays) << log;
      } else {
        EXPECT_EQ(y, expected[run]);
        EXPECT_EQ(launches, run < 2) << log;
        EXPECT_EQ(captures, run == 1) << log;
        EXPECT_EQ(replays, run >= 1) << log;
      }
    }
  }
}

TEST_F(CudaExecutorTest, ProductsThatTheLibraryRefusesAreWarnedAbout) {
  Write(program::SampleProgram());
  const auto warnings = [&](const std::string& blas, bool refuses) {
    if (refuses)
      recording_.FailNext("cublasLtMatmulAlgoGetHeuristic", kCuInvalidValue,
                          1 << 20);
    const auto device =
        std::move(MakeCudaDevice({0, kLibrary, blas, kLibrary})).value();
    auto executor = executor::Executor::Load(path_, *device);
    EXPECT_TRUE(executor.ok()) << executor.status();
    recording_.FailNext("cublasLtMatmulAlgoGetHeuristic", kCuSuccess, 0);
    return device->Warnings();
  };
  EXPECT_THAT(warnings(kLibrary, /*refuses=*/false), ::testing::IsEmpty());
  EXPECT_THAT(warnings("none", /*refuses=*/false), ::testing::IsEmpty());
  EXPECT_THAT(warnings(kLibrary, /*refuses=*/true),
              ::testing::ElementsAre(::testing::MatchesRegex(
                  ".* matrix products? runs? on Partita's own kernels, .*")));
}

TEST_F(CudaExecutorTest, WhatCannotBeCapturedRunsAsEver) {
  Write(program::SampleProgram());
  for (const char* fails :
       {"cuStreamBeginCapture_v2", "cudnnBackendExecute", "cuStreamEndCapture",
        "cuGraphInstantiateWithFlags"}) {
    SCOPED_TRACE(fails);
    const auto device =
        std::move(MakeCudaDevice({0, kLibrary, kLibrary, kLibrary})).value();
    auto executor = executor::Executor::Load(path_, *device);
    ASSERT_TRUE(executor.ok()) << executor.status();
    const Floats x = Seeded(32, 7);
    const Floats expected = RunSample(**executor, x);
    recording_.FailNext(fails, kCuCaptureInvalidated);
    EXPECT_EQ(RunSample(**executor, x), expected);
    recording_.TakeLog();
    EXPECT_EQ(RunSample(**executor, x), expected);
    EXPECT_THAT(recording_.TakeLog(),
                ::testing::Not(::testing::HasSubstr("Capture")));
  }
}

TEST_F(CudaExecutorTest, ProfilersSeeTheNamesOfOperations) {
  program::SampleProgram program;
  Write(program);
  const auto device =
      std::move(MakeCudaDevice({0, kLibrary, kLibrary, kLibrary, kLibrary}))
          .value();
  auto executor = executor::Executor::Load(path_, *device);
  ASSERT_TRUE(executor.ok()) << executor.status();
  recording_.TakeLog();
  RunSample(**executor, Seeded(32, 7));
  const std::string log = recording_.TakeLog();
  size_t pushes = 0, pops = 0;
  for (size_t at = 0;
       (at = log.find("nvtxRangePushA", at)) != std::string::npos; ++at)
    ++pushes;
  for (size_t at = 0; (at = log.find("nvtxRangePop", at)) != std::string::npos;
       ++at)
    ++pops;
  EXPECT_EQ(pushes, static_cast<size_t>((*executor)->step_count()));
  EXPECT_EQ(pops, pushes);
  // A step's range encloses the step's calls.
  EXPECT_THAT(
      log, ::testing::ContainsRegex("nvtxRangePushA [^\n]+\ncublasLtMatmul"));
}

TEST_F(CudaExecutorTest, DividedProgramsExchangeThroughTheHost) {
  for (const auto& [data, tensor] :
       {std::pair(1, 1), std::pair(2, 1), std::pair(1, 3), std::pair(2, 2)}) {
    SCOPED_TRACE(::testing::Message() << data << "x" << tensor);
    const auto ranks = Load(program::DividedProgram(5, data, tensor));
    ASSERT_NE(ranks, nullptr);
    const Floats x = Seeded(40, 9), w0 = Seeded(56, 1), b0 = Seeded(7, 2);
    Floats expected(40, 0);
    for (size_t i = 0; i < 40; ++i) {
      for (size_t m = 0; m < 7; ++m) {
        float hidden = b0[m];
        for (size_t k = 0; k < 8; ++k)
          hidden += x[i / 8 * 8 + k] * w0[k * 7 + m];
        expected[i] += std::max(hidden, 0.0f) *
                       (static_cast<float>((m * 8 + i % 8) % 5) - 2.0f);
      }
    }
    Floats y(40, -1), all(40, -1);
    std::vector<int64_t> where(static_cast<size_t>(data * tensor), -1);
    for (int run = 0; run < 2; ++run) {
      const absl::Status status =
          ranks->Run({{DType::kF32, {5, 8}, x.data()}},
                     {{DType::kF32, {5, 8}, y.data()},
                      {DType::kF32, {5, 8}, all.data()},
                      {DType::kI64, {data * tensor}, where.data()}});
      ASSERT_TRUE(status.ok()) << status;
      ExpectNear(expected, y);
      ExpectNear(expected, all);
      for (size_t i = 0; i < where.size(); ++i)
        EXPECT_EQ(where[i], static_cast<int64_t>(i));
    }
    // The host takes part in each step, so nothing is captured.
    EXPECT_THAT(recording_.TakeLog(),
                ::testing::Not(::testing::HasSubstr("Capture")));
  }
}

TEST_F(CudaExecutorTest, TrainsDivided) {
  for (const auto& [data, tensor, host] :
       {std::tuple(1, 1, false), {2, 2, false}, {1, 1, true}, {2, 2, true}}) {
    program::TrainingProgram training(5, data, tensor);
    training.program.parameters[1]->host = host;
    const auto ranks = Load(training);
    ASSERT_NE(ranks, nullptr);
    EXPECT_EQ(executor::FullestOf(ranks->Uses().value()).host, host ? 4 : 0);
    Floats w = program::TrainingProgram::Start();
    TrainThreeSteps(*ranks, w);
  }
}

TEST_F(CudaExecutorTest, TrainsInAPipeline) {
  using program::PipelineProgram;
  const auto ranks = Load(PipelineProgram(kPipelineRows, 2));
  ASSERT_NE(ranks, nullptr);
  Floats w = PipelineProgram::StartOfW(), u = PipelineProgram::StartOfU();
  PipeThreeSteps(*ranks, w, u);
}

// A second operation needs more scratch than the first was captured with.
TEST_F(CudaExecutorTest, GraphsKeepTheScratchTheyWereCapturedWith) {
  recording_.Watch();
  const auto device =
      std::move(MakeCudaDevice({0, kLibrary, kLibrary, kLibrary})).value();
  const auto stream = std::move(device->CreateStream()).value();
  const auto prepare = [&](int64_t size) {
    device::GemmDesc desc;
    desc.m = desc.n = desc.k = size;
    desc.lhs_strides = desc.rhs_strides = desc.out_strides = {0, size, 1};
    desc.activation = device::Activation::kSilu;  // uses the scratch
    return std::move(device->PrepareGemm(desc, {nullptr, nullptr, nullptr}))
        .value();
  };
  const Floats a = Seeded(64, 1), b = Seeded(64, 2);
  const auto memory =
      std::move(device::Allocation::Make(*device, 3 * 256)).value();
  void* buffers[] = {memory.data(), memory.data() + 256, memory.data() + 512};
  ASSERT_TRUE(device->CopyToDevice(*stream, buffers[0], a.data(), 256).ok());
  ASSERT_TRUE(device->CopyToDevice(*stream, buffers[1], b.data(), 256).ok());
  const auto small = prepare(8);
  const auto graph = device->Capture(
      *stream, [&] { return device->Execute(*stream, *small, buffers, 3); });
  ASSERT_TRUE(graph.ok() && *graph != nullptr) << graph.status();

  // `other` would reuse scratch that was freed. The fence stops the larger
  // scratch from being allocated in that place.
  const auto fence = std::move(device::Allocation::Make(*device, 256)).value();
  const int64_t freed = device->Memory().scratch;
  const auto big = prepare(64);
  const auto other =
      std::move(device::Allocation::Make(*device, freed)).value();
  const std::vector<char> pattern(static_cast<size_t>(freed), 42);
  ASSERT_TRUE(
      device->CopyToDevice(*stream, other.data(), pattern.data(), freed).ok());
  ASSERT_TRUE(device->Replay(*stream, **graph).ok());
  std::vector<char> kept(pattern.size());
  Floats c(64);
  ASSERT_TRUE(
      device->CopyToHost(*stream, kept.data(), other.data(), freed).ok());
  ASSERT_TRUE(device->CopyToHost(*stream, c.data(), buffers[2], 256).ok());
  EXPECT_TRUE(kept == pattern);
  float sum = 0;
  for (size_t k = 0; k < 8; ++k) sum += a[k] * b[8 * k];
  EXPECT_NEAR(c[0], sum / (1 + std::exp(-sum)), 1e-5);
}

}  // namespace
}  // namespace partita::cuda
