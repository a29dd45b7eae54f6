// Compares attention by cuDNN with the compiler's kernel on every GPU, and both
// with plain loops. The programs are compiled from tests/gpu/attention_model.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/dnn.h"
#include "runtime/cuda/recording/recording.h"
#include "runtime/executor/executor.h"
#include "runtime/executor/profile.h"
#include "runtime/program/artifact.h"
#include "tests/conformance/device_fixture.h"

namespace partita::conformance {
namespace {

using base::DType;
using cuda::AttentionBy;
using ::testing::EndsWith;
using ::testing::Not;

constexpr size_t kFirstVersion = 91000;  // of cuDNN that computes attention
// Both round the softmax and the result to bf16.
constexpr double kTolerance = 8e-3;
constexpr double kSumTolerance = 1e-3;  // of the log-sum-exp, in f32

// The arguments of attention_model in the BUILD file.
struct Case {
  const char* name;
  int64_t batch, heads, groups, positions, size;
  bool causal, has_lse;

  int64_t token() const { return (heads + 2 * groups) * size; }
  int64_t rows() const { return batch * positions * heads; }
};
constexpr Case kSmall = {"small", 2, 4, 2, 24, 16, true, true};
constexpr Case kGpt2Medium = {"gpt2_medium", 1, 16, 16, 1024, 64, true, false};
// Not multiples of the tiles of 64 positions.
constexpr Case kVitL16 = {"vit_l_16", 2, 16, 16, 197, 64, false, true};
constexpr Case kLlama = {"llama", 1, 32, 8, 2048, 128, true, false};

struct Outputs {
  std::vector<float> y, lse;
};

// Computes the row of y of one token and head, and its log-sum-exp. Rows are in
// the order of y: batch, position, head.
void ComputeRow(const Case& which, const std::vector<float>& x, int64_t row,
                Outputs& outputs) {
  const int64_t n = row % which.heads;
  const int64_t i = row / which.heads % which.positions;
  const int64_t b = row / which.heads / which.positions;
  const int64_t g = n / (which.heads / which.groups);
  const auto at = [&](int64_t position, int64_t head, int64_t c) {
    return static_cast<double>(
        x[static_cast<size_t>((b * which.positions + position) * which.token() +
                              head * which.size + c)]);
  };
  const int64_t end = which.causal ? i + 1 : which.positions;
  std::vector<double> weights;
  double sum = 0;
  for (int64_t j = 0; j < end; ++j) {
    double score = 0;
    for (int64_t c = 0; c < which.size; ++c)
      score += at(i, n, c) * at(j, which.heads + g, c);
    weights.push_back(
        std::exp(score / std::sqrt(static_cast<double>(which.size))));
    sum += weights.back();
  }
  for (int64_t c = 0; c < which.size; ++c) {
    double value = 0;
    for (int64_t j = 0; j < end; ++j)
      value += weights[static_cast<size_t>(j)] / sum *
               at(j, which.heads + which.groups + g, c);
    outputs.y[static_cast<size_t>(row * which.size + c)] =
        static_cast<float>(value);
  }
  outputs
      .lse[static_cast<size_t>((b * which.heads + n) * which.positions + i)] =
      static_cast<float>(std::log(sum));
}

// Operands of the kernel of kSmall.
int small_y = -1, small_lse = -1;

// The kernel of kSmall as the recorded GPU executes it.
void RecordedKernel(void** parameters, const cuda::recording::Place& place) {
  if (place.block_at[0] + place.block_at[1] + place.block_at[2] +
          place.thread_at[0] + place.thread_at[1] + place.thread_at[2] >
      0)
    return;
  const auto buffer = [&](int i) {
    return *static_cast<void**>(parameters[i]);
  };
  const int64_t count = kSmall.batch * kSmall.positions * kSmall.token();
  std::vector<float> x(static_cast<size_t>(count));
  base::Convert(DType::kBF16, buffer(0), DType::kF32, x.data(), count);
  Outputs outputs;
  outputs.y.resize(static_cast<size_t>(kSmall.rows() * kSmall.size));
  outputs.lse.resize(static_cast<size_t>(kSmall.rows()));
  for (int64_t row = 0; row < kSmall.rows(); ++row)
    ComputeRow(kSmall, x, row, outputs);
  base::Convert(DType::kF32, outputs.y.data(), DType::kBF16, buffer(small_y),
                kSmall.rows() * kSmall.size);
  std::copy(outputs.lse.begin(), outputs.lse.end(),
            static_cast<float*>(buffer(small_lse)));
}

class DeviceAttentionTest : public ::testing::TestWithParam<DeviceUnderTest> {
 protected:
  static bool IsRecorded() { return !GetParam().driver.empty(); }

  static absl::StatusOr<std::unique_ptr<device::Device>> Make(
      AttentionBy attention) {
    cuda::CudaOptions options = {0, GetParam().driver, GetParam().blas,
                                 GetParam().blas};
    options.measures = true;
    options.attention = attention;
    return cuda::MakeCudaDevice(options);
  }

  // Runs the program, and sets the name of the kernel in the profile.
  static Outputs Run(const Case& which, executor::Executor& executor,
                     const std::vector<float>& x, std::string& name) {
    const std::string bits = Encode(DType::kBF16, x);
    Outputs outputs;
    outputs.lse.resize(static_cast<size_t>(which.rows()), NAN);
    std::string y(static_cast<size_t>(which.rows() * which.size * 2), '\x7f');
    std::vector<executor::MutableTensor> tensors = {
        {DType::kBF16, executor.outputs()[0].shape, y.data()}};
    if (which.has_lse)
      tensors.push_back(
          {DType::kF32, executor.outputs()[1].shape, outputs.lse.data()});
    executor.EnableProfile();
    const absl::Status status = executor.Run(
        {{DType::kBF16, executor.inputs()[0].shape, bits.data()}}, tensors);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(executor.profile()->Rows().size(), 1u);
    name = executor.profile()->Rows()[0].name;
    outputs.y = Decode(DType::kBF16, y);
    return outputs;
  }

  // Compares some rows with plain loops.
  static void ExpectRows(const Case& which, const std::vector<float>& x,
                         const Outputs& found) {
    Outputs expected = found;
    for (int64_t row = 0; row < which.rows(); row += which.rows() / 97 + 1)
      ComputeRow(which, x, row, expected);
    ExpectNear(expected.y, found.y, kTolerance);
    if (which.has_lse) ExpectNear(expected.lse, found.lse, kSumTolerance);
  }

  // Lets the recorded GPU execute the kernel of kSmall.
  static void RegisterKernel(const program::Program& program) {
    const program::Function& main = *program.functions()->Get(
        static_cast<unsigned>(program.entries()->Get(0)->main()));
    for (const program::Instruction* instruction : *main.body()) {
      const program::Launch* launch = instruction->operation_as_Launch();
      if (launch == nullptr || launch->attention() == nullptr) continue;
      small_y = launch->attention()->out()->operand();
      small_lse = launch->attention()->lse();
      cuda::recording::Recording(GetParam().driver)
          .Register(program.kernels()
                        ->Get(static_cast<unsigned>(launch->kernel()))
                        ->name()
                        ->c_str(),
                    &RecordedKernel);
    }
    ASSERT_GE(small_lse, 0) << "no launch describes an attention";
  }

  static void CheckTarget(const Case& which, const std::string& target,
                          const std::vector<float>& x) {
    SCOPED_TRACE(target);
    const std::string path = absl::StrCat("tests/conformance/attention_",
                                          which.name, "_", target, ".partita");
    const auto artifact = program::Artifact::Open(path);
    ASSERT_TRUE(artifact.ok()) << artifact.status();
    const program::Program& program = artifact->program();
    const auto own = std::move(Make(AttentionBy::kLaunch)).value();
    // Code for sm_90a runs only on those.
    if (target != "sm_80" && !own->CheckTarget(program.target()->str(),
                                               program.cpu_features()->str())
                                  .ok())
      return;
    if (IsRecorded()) RegisterKernel(program);
    const auto launch = executor::Executor::Load(path, *own);
    ASSERT_TRUE(launch.ok()) << launch.status();
    std::string name;
    const Outputs launched = Run(which, **launch, x, name);
    EXPECT_THAT(name, Not(EndsWith("(cuDNN)")));
    ExpectRows(which, x, launched);

    const auto dnn = std::move(Make(AttentionBy::kDnn)).value();
    const auto by_dnn = executor::Executor::Load(path, *dnn);
    ASSERT_TRUE(by_dnn.ok()) << by_dnn.status();
    const Outputs found = Run(which, **by_dnn, x, name);
    ASSERT_THAT(name, EndsWith("(cuDNN)"));
    ExpectRows(which, x, found);
    ExpectNear(launched.y, found.y, kTolerance);
    if (which.has_lse) ExpectNear(launched.lse, found.lse, kSumTolerance);
  }

  static void Check(const Case& which) {
    if (!IsRecorded()) {
      const auto device = Make(AttentionBy::kLaunch);
      if (!device.ok()) GTEST_SKIP() << "no GPU: " << device.status();
      const auto dnn = cuda::Dnn::OpenWithoutGpu("");
      if (!dnn.ok()) GTEST_SKIP() << "no cuDNN: " << dnn.status();
      if ((*dnn)->Version() < kFirstVersion)
        GTEST_SKIP() << "cuDNN 9.10 or later computes attention, found "
                     << (*dnn)->Version();
    } else if (&which != &kSmall) {
      GTEST_SKIP() << "the recorded GPU does not execute the compiler's kernel";
    }
    std::vector<float> x =
        Values(which.batch * which.positions * which.token(), 5);
    for (float& value : x) value *= 2;  // some weights are far from the mean
    x = Decode(DType::kBF16, Encode(DType::kBF16, x));
    for (const char* target : {"sm_80", "sm_90a"})
      CheckTarget(which, target, x);
  }
};

TEST_P(DeviceAttentionTest, Small) { Check(kSmall); }
TEST_P(DeviceAttentionTest, Gpt2Medium) { Check(kGpt2Medium); }
TEST_P(DeviceAttentionTest, VitL16) { Check(kVitL16); }
TEST_P(DeviceAttentionTest, Llama) { Check(kLlama); }

// The GPU is listed on machines without one, too, and skipped there.
std::vector<DeviceUnderTest> Gpus() {
  std::vector<DeviceUnderTest> gpus = {{"cuda", 1, true, "cuda:sm_80"}};
  for (const DeviceUnderTest& device : AllDevices())
    if (device.IsGpu() && !device.driver.empty() && device.blas != "none")
      gpus.push_back(device);
  return gpus;
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceAttentionTest,
                         ::testing::ValuesIn(Gpus()), DeviceName);

}  // namespace
}  // namespace partita::conformance
