// Loads and runs hand-built programs on the CPU and the null device.
#include "runtime/executor/executor.h"

#include <stdlib.h>

#include <algorithm>
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
#include "runtime/device/null_device.h"
#include "runtime/program/test_program.h"

namespace partita::executor {
namespace {

using base::DType;
using ::testing::HasSubstr;

using Floats = std::vector<float>;

Floats Seeded(int64_t count, uint64_t seed) {
  Floats values(static_cast<size_t>(count));
  EXPECT_TRUE(base::FillElements({"uniform", 1.0, seed}, DType::kF32, 0, count,
                                 values.data())
                  .ok());
  return values;
}

Floats Bias() { return {0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5}; }

// relu(x w + b), with x of [rows, 8] and w of [8, 8].
Floats Linear(const Floats& x, const Floats& w, const Floats& b) {
  Floats y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    double sum = b[i % 8];
    for (size_t k = 0; k < 8; ++k)
      sum += static_cast<double>(x[i / 8 * 8 + k]) * w[k * 8 + i % 8];
    y[i] = static_cast<float>(std::max(sum, 0.0));
  }
  return y;
}

// The output y of SampleProgram's main.
Floats ExpectedY(const Floats& x) {
  const Floats w0 = Seeded(64, 1), w1 = Seeded(64, 2);
  return Linear(Linear(x, w0, Bias()), Linear(w0, w1, Bias()), Bias());
}

void ExpectClose(const Floats& expected, const Floats& found) {
  ASSERT_EQ(expected.size(), found.size());
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], 1e-4 * (1 + std::abs(expected[i]))) << i;
}

class ExecutorTest : public ::testing::Test {
 protected:
  ExecutorTest() : cpu_(std::move(cpu::MakeCpuDevice({2})).value()) {
    folder_ = ::testing::TempDir() + "/executor_XXXXXX";
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    path_ = folder_ + "/model.partita";
  }
  ~ExecutorTest() override { std::filesystem::remove_all(folder_); }

  void Write(const program::SampleProgram& sample) {
    ASSERT_TRUE(program::WriteArtifact(path_, sample.Parts()).ok());
  }
  std::unique_ptr<Executor> Load(const LoadOptions& options = {}) {
    absl::StatusOr<std::unique_ptr<Executor>> executor =
        Executor::Load(path_, *cpu_, options);
    EXPECT_TRUE(executor.ok()) << executor.status();
    return executor.ok() ? std::move(*executor) : nullptr;
  }
  std::string LoadError(const LoadOptions& options = {}) {
    const absl::StatusOr<std::unique_ptr<Executor>> executor =
        Executor::Load(path_, *cpu_, options);
    return std::string(executor.status().message());
  }

  // Memory of the sample's ports.
  struct Ports {
    Floats x = Seeded(32, 10), image = Seeded(256, 11), y = Floats(32),
           z = Floats(256);
    std::vector<int64_t> k = std::vector<int64_t>(8);

    std::vector<ConstTensor> Inputs() const {
      return {{DType::kF32, {4, 8}, x.data()},
              {DType::kF32, {1, 4, 8, 8}, image.data()}};
    }
    std::vector<MutableTensor> Outputs() {
      return {{DType::kF32, {4, 8}, y.data()},
              {DType::kF32, {1, 4, 8, 8}, z.data()},
              {DType::kI64, {8}, k.data()}};
    }
  };

  void ExpectRight(Executor& executor) {
    Ports ports;
    const absl::Status status = executor.Run(ports.Inputs(), ports.Outputs());
    ASSERT_TRUE(status.ok()) << status;
    ExpectClose(ExpectedY(ports.x), ports.y);
    EXPECT_EQ(ports.k, (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  }

  std::unique_ptr<device::Device> cpu_;
  std::string folder_, path_;
};

TEST_F(ExecutorTest, RunsTheSample) {
  Write(program::SampleProgram());
  const std::unique_ptr<Executor> executor = Load();
  ASSERT_NE(executor, nullptr);
  EXPECT_EQ(executor->step_count(), 6);
  EXPECT_EQ(executor->inputs()[1].name, "image");
  EXPECT_EQ(executor->outputs()[2].dtype, DType::kI64);
  ExpectRight(*executor);
}

TEST_F(ExecutorTest, EveryRunReadsItsOwnMemory) {
  Write(program::SampleProgram());
  const std::unique_ptr<Executor> executor = Load();
  ASSERT_NE(executor, nullptr);
  for (uint64_t seed = 20; seed < 24; ++seed) {
    Ports ports;
    ports.x = Seeded(32, seed);
    ASSERT_TRUE(executor->Run(ports.Inputs(), ports.Outputs()).ok());
    ExpectClose(ExpectedY(ports.x), ports.y);
  }
}

TEST_F(ExecutorTest, UnalignedMemoryIsCopied) {
  Write(program::SampleProgram());
  const std::unique_ptr<Executor> executor = Load();
  ASSERT_NE(executor, nullptr);
  EXPECT_EQ(executor->Memory().staging, 0);
  Ports ports;
  // At least one of two neighbouring addresses is not 64-byte aligned.
  for (const size_t shift : {0, 1}) {
    Floats x(33), y(33, -1.0f);
    std::copy(ports.x.begin(), ports.x.end(),
              x.begin() + static_cast<std::ptrdiff_t>(shift));
    std::vector<ConstTensor> inputs = ports.Inputs();
    std::vector<MutableTensor> outputs = ports.Outputs();
    inputs[0].data = x.data() + shift;
    outputs[0].data = y.data() + shift;
    ASSERT_TRUE(executor->Run(inputs, outputs).ok());
    const auto begin = y.begin() + static_cast<std::ptrdiff_t>(shift);
    ExpectClose(ExpectedY(ports.x), Floats(begin, begin + 32));
    EXPECT_EQ(y[shift == 0 ? 32 : 0], -1.0f);
  }
  EXPECT_GT(executor->Memory().staging, 0);
}

TEST_F(ExecutorTest, TensorsMustMatch) {
  Write(program::SampleProgram());
  const std::unique_ptr<Executor> executor = Load();
  ASSERT_NE(executor, nullptr);
  Ports ports;
  std::vector<ConstTensor> inputs = ports.Inputs();
  EXPECT_EQ(executor->Run({}, ports.Outputs()).message(),
            "expected 2 inputs, found 0");
  inputs[1].shape = {1, 4, 64};
  EXPECT_EQ(executor->Run(inputs, ports.Outputs()).message(),
            "input 'image': expected f32[1,4,8,8], found f32[1,4,64]");
  inputs = ports.Inputs();
  inputs[0].dtype = DType::kF64;
  EXPECT_EQ(executor->Run(inputs, ports.Outputs()).message(),
            "input 'x': expected f32[4,8], found f64[4,8]");
  inputs = ports.Inputs();
  inputs[0].data = nullptr;
  EXPECT_EQ(executor->Run(inputs, ports.Outputs()).message(),
            "input 'x': it has no data");
}

TEST_F(ExecutorTest, WeightsComeFromFiles) {
  const Floats w0 = Seeded(64, 1), w1 = Seeded(64, 2);
  // w0 is 64-byte aligned; w1 is bf16 at an odd offset, with exactly
  // representable values.
  Floats rounded = w1;
  std::string w1_bytes(128, '\0');
  base::Convert(DType::kF32, w1.data(), DType::kBF16, w1_bytes.data(), 64);
  base::Convert(DType::kBF16, w1_bytes.data(), DType::kF32, rounded.data(), 64);
  std::ofstream(folder_ + "/weights.bin", std::ios::binary)
      << std::string(64, 'x')
      << std::string(reinterpret_cast<const char*>(w0.data()), 256) << "y"
      << w1_bytes;
  program::SampleProgram sample;
  sample.program.parameters[0] =
      program::MakeFromFile("w0", program::DType::f32, {8, 8}, "weights.bin",
                            64, program::DType::f32);
  sample.program.parameters[1] =
      program::MakeFromFile("w1", program::DType::f32, {8, 8}, "weights.bin",
                            321, program::DType::bf16);
  Write(sample);
  const std::unique_ptr<Executor> executor = Load();
  ASSERT_NE(executor, nullptr);
  EXPECT_GE(executor->Memory().mapped, 256);
  Ports ports;
  ASSERT_TRUE(executor->Run(ports.Inputs(), ports.Outputs()).ok());
  ExpectClose(
      Linear(Linear(ports.x, w0, Bias()), Linear(w0, rounded, Bias()), Bias()),
      ports.y);
}

TEST_F(ExecutorTest, WeightsMayLieElsewhere) {
  const Floats w0 = Seeded(64, 1);
  std::filesystem::create_directory(folder_ + "/elsewhere");
  std::ofstream(folder_ + "/elsewhere/weights.bin", std::ios::binary)
      << std::string(reinterpret_cast<const char*>(w0.data()), 256);
  program::SampleProgram sample;
  sample.program.parameters[0] = program::MakeFromFile(
      "w0", program::DType::f32, {8, 8}, "weights.bin", 0, program::DType::f32);
  Write(sample);
  EXPECT_THAT(LoadError(), HasSubstr("parameter 'w0': " + folder_ +
                                     "//weights.bin: no such file"));
  EXPECT_THAT(LoadError(), HasSubstr("--weights-dir"));
  LoadOptions options;
  options.weights_dir = folder_ + "/elsewhere";
  const std::unique_ptr<Executor> executor = Load(options);
  ASSERT_NE(executor, nullptr);
  ExpectRight(*executor);
}

TEST_F(ExecutorTest, ShortWeightFilesAreRefused) {
  std::ofstream(folder_ + "/weights.bin", std::ios::binary)
      << std::string(300, 'x');
  program::SampleProgram sample;
  sample.program.parameters[0] =
      program::MakeFromFile("w0", program::DType::f32, {8, 8}, "weights.bin",
                            64, program::DType::f32);
  Write(sample);
  EXPECT_THAT(LoadError(), HasSubstr("parameter 'w0'"));
  EXPECT_THAT(
      LoadError(),
      HasSubstr(
          "weights.bin: expected 256 bytes at byte 64, but the file has 300"));
}

TEST_F(ExecutorTest, ForeignTargetsAreRefused) {
  program::SampleProgram sample;
  sample.program.target = "cuda:sm_90";
  Write(sample);
  EXPECT_THAT(LoadError(),
              HasSubstr(path_ + ": the model was compiled for target "
                                "'cuda:sm_90', this device is 'cpu'"));
}

TEST_F(ExecutorTest, KernelsRunFromTheCodeSection) {
  std::ifstream file("runtime/executor/test_kernels.so", std::ios::binary);
  const std::string code{std::istreambuf_iterator<char>(file),
                         std::istreambuf_iterator<char>()};
  ASSERT_FALSE(code.empty());
  program::SampleProgram sample;
  sample.program.kernels.push_back(program::MakeKernel("scale"));
  program::LaunchT launch;
  launch.range = 32;
  launch.grain = 1;
  launch.scratch_bytes = 64;
  // y = 2 x, in place of the first call.
  auto& body = sample.program.functions[2]->body;
  body[1] = program::MakeLaunch(
      launch, {program::Argument(0, 128), program::Argument(6, 128)}, 1);
  ASSERT_TRUE(program::WriteArtifact(path_, sample.Parts(code)).ok());
  const std::unique_ptr<Executor> executor = Load();
  ASSERT_NE(executor, nullptr);
  Ports ports;
  ASSERT_TRUE(executor->Run(ports.Inputs(), ports.Outputs()).ok());
  for (size_t i = 0; i < 32; ++i) EXPECT_EQ(ports.y[i], 2 * ports.x[i]);
  sample.program.kernels[0]->name = "absent";
  ASSERT_TRUE(program::WriteArtifact(path_, sample.Parts(code)).ok());
  EXPECT_THAT(LoadError(),
              HasSubstr("the code section has no kernel 'absent'"));
}

TEST_F(ExecutorTest, MemoryIsReported) {
  Write(program::SampleProgram());
  const std::unique_ptr<Executor> executor = Load();
  ASSERT_NE(executor, nullptr);
  const MemoryUse use = executor->Memory();
  EXPECT_EQ(use.arena, 256);
  EXPECT_GT(use.globals, 0);
  EXPECT_EQ(use.Total(), use.arena + use.globals + use.packed + use.scratch);
}

TEST_F(ExecutorTest, ProfilesAddUp) {
  Write(program::SampleProgram());
  const std::unique_ptr<Executor> executor = Load();
  ASSERT_NE(executor, nullptr);
  executor->EnableProfile();
  ExpectRight(*executor);
  ExpectRight(*executor);
  int64_t calls = 0;
  for (const ProfileRow& row : executor->profile()->Rows()) {
    calls += row.calls;
    EXPECT_GT(row.milliseconds, 0) << row.name;
    if (row.name.rfind("gemm", 0) == 0) {
      EXPECT_EQ(row.calls, 2);
      EXPECT_EQ(row.flops, 2 * 2 * 4 * 8 * 8);
    }
  }
  EXPECT_EQ(calls, 6);
  EXPECT_THAT(executor->profile()->ToString(),
              HasSubstr("gemm 1x4x8x8 f32 bias relu"));
}

TEST_F(ExecutorTest, TheNullDeviceCounts) {
  Write(program::SampleProgram());
  device::NullDevice null;
  const absl::StatusOr<std::unique_ptr<Executor>> executor =
      Executor::Load(path_, null);
  ASSERT_TRUE(executor.ok()) << executor.status();
  const device::NullCounts before = null.counts();
  Ports ports;
  ASSERT_TRUE((*executor)->Run(ports.Inputs(), ports.Outputs()).ok());
  EXPECT_EQ(null.counts().library_calls - before.library_calls, 3);
  // Three copies of the program, two inputs, three outputs.
  EXPECT_EQ(null.counts().copies - before.copies, 3 + 2 + 3);
  EXPECT_EQ((*executor)->Memory().arena, 256);
}

TEST_F(ExecutorTest, TheNullDevicePlansModelsOfAnySize) {
  program::SampleProgram sample;
  // 16 TB of weights that only a call reads.
  sample.program.parameters[0]->type->shape = {int64_t{1} << 21,
                                               int64_t{1} << 21};
  Write(sample);
  device::NullDevice null;
  const absl::StatusOr<std::unique_ptr<Executor>> executor =
      Executor::Load(path_, null);
  ASSERT_TRUE(executor.ok()) << executor.status();
  EXPECT_GT((*executor)->Memory().globals, int64_t{1} << 44);
  sample.program.parameters[0]->type->shape = {int64_t{1} << 30,
                                               int64_t{1} << 27};
  Write(sample);
  EXPECT_THAT(LoadError(), HasSubstr("parameter 'w0': cannot allocate"));
}

}  // namespace
}  // namespace partita::executor
