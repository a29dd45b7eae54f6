// Convolutions that CPUs with AMX compute as sums of products of bf16. Other
// devices compute the same in their own way.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/device_fixture.h"

namespace partita::conformance {
namespace {

using device::Activation;
using device::ConvDesc;

// A convolution [batch, height, width, channels] to `outputs` channels, with
// stride 1 and padding that keeps the size.
ConvDesc Image(int64_t batch, int64_t height, int64_t width, int64_t channels,
               int64_t outputs, int64_t kernel) {
  ConvDesc desc;
  desc.channels_last = true;
  desc.input_shape = {batch, height, width, channels};
  desc.weight_shape = {outputs, channels, kernel, kernel};
  desc.strides = desc.dilations = {1, 1};
  desc.low = desc.high = {kernel / 2, kernel / 2};
  return desc;
}

// Fills in the result's shape.
ConvDesc Finished(ConvDesc desc) {
  desc.out_shape = {desc.input_shape[0]};
  for (size_t i = 0; i < 2; ++i) {
    const int64_t room = desc.low[i] + desc.input_shape[1 + i] + desc.high[i] -
                         desc.dilations[i] * (desc.weight_shape[2 + i] - 1) - 1;
    desc.out_shape.push_back(room / desc.strides[i] + 1);
  }
  desc.out_shape.push_back(desc.weight_shape[0]);
  return desc;
}

int64_t Count(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

class DeviceWindowConvTest : public DeviceTest {
 protected:
  struct Operands {
    std::vector<float> input, weight, bias, residual;
  };
  static Operands OperandsOf(const ConvDesc& desc) {
    Operands operands = {Values(Count(desc.input_shape), 1),
                         Values(Count(desc.weight_shape), 2),
                         {},
                         {}};
    if (desc.has_bias) operands.bias = Values(desc.weight_shape[0], 3);
    if (desc.has_residual) operands.residual = Values(Count(desc.out_shape), 4);
    return operands;
  }

  static std::vector<float> Expected(const ConvDesc& desc,
                                     const Operands& operands) {
    std::vector<float> expected(static_cast<size_t>(Count(desc.out_shape)));
    ReferenceConv(desc, operands.input, operands.weight, operands.bias,
                  operands.residual, expected);
    return expected;
  }

  device::Allocation Put(const std::vector<float>& values) {
    return Upload(values.data(), static_cast<int64_t>(4 * values.size()));
  }

  // CPUs with AMX must use it if `expect_amx`; if not, they must not.
  void ExpectAmx(const device::LibraryOp& op, bool expect_amx) const {
#ifdef __x86_64__
    if (Executes() && !GetParam().IsGpu() && __builtin_cpu_supports("amx-bf16"))
      EXPECT_EQ(op.Description() == "split_window:amx_bf16", expect_amx)
          << op.Description();
#endif
  }

  std::vector<float> Run(const ConvDesc& desc, const Operands& operands,
                         bool constant = true, bool expect_amx = true) {
    std::vector<device::Allocation> memory;
    memory.push_back(Put(operands.input));
    memory.push_back(Put(operands.weight));
    if (desc.has_bias) memory.push_back(Put(operands.bias));
    if (desc.has_residual) memory.push_back(Put(operands.residual));
    std::vector<float> found(static_cast<size_t>(Count(desc.out_shape)));
    if (!desc.residual_in_out) memory.push_back(Put(found));
    std::vector<void*> buffers;
    for (const device::Allocation& allocation : memory)
      buffers.push_back(allocation.data());
    if (desc.residual_in_out) buffers.push_back(buffers.back());
    std::vector<const void*> constants(buffers.size(), nullptr);
    if (constant) constants[1] = buffers[1];
    absl::StatusOr<std::unique_ptr<device::LibraryOp>> op =
        device_->PrepareConv(desc, constants);
    EXPECT_TRUE(op.ok()) << op.status();
    if (!op.ok()) return found;
    ExpectAmx(**op, constant && expect_amx);
    for (int repeat = 0; repeat < (desc.residual_in_out ? 1 : 2); ++repeat)
      EXPECT_TRUE(device_
                      ->Execute(*stream_, **op, buffers.data(),
                                static_cast<int>(buffers.size()))
                      .ok());
    Download(memory.back(), found.data());
    return found;
  }

  void Check(const ConvDesc& unfinished) {
    const ConvDesc desc = Finished(unfinished);
    const Operands operands = OperandsOf(desc);
    const std::vector<float> found = Run(desc, operands);
    if (Executes()) ExpectNear(Expected(desc, operands), found, 2e-5);
  }
};

TEST_P(DeviceWindowConvTest, ChannelsAndKernels) {
  Check(Image(1, 13, 14, 64, 61, 2));
  Check(Image(1, 13, 14, 90, 61, 3));
  Check(Image(1, 9, 14, 64, 64, 5));
  Check(Image(2, 9, 14, 64, 128, 3));
}

TEST_P(DeviceWindowConvTest, PaddingOfEachSide) {
  for (size_t dimension = 0; dimension < 2; ++dimension) {
    for (const int64_t size : {0, 5}) {
      SCOPED_TRACE(::testing::Message() << dimension << ", " << size);
      ConvDesc desc = Image(1, 9, 14, 64, 64, 3);
      desc.low[dimension] = size;
      Check(desc);
      desc.low[dimension] = 0;
      desc.high[dimension] = size;
      Check(desc);
    }
  }
}

TEST_P(DeviceWindowConvTest, StridesAndDilations) {
  ConvDesc desc = Image(1, 15, 31, 96, 64, 3);
  desc.strides = {2, 2};
  Check(desc);
  desc.strides = {2, 1};
  desc.low = {0, 2};
  Check(desc);
  desc.strides = {1, 2};
  Check(desc);
  desc.strides = {1, 1};
  desc.dilations = {2, 3};
  desc.low = desc.high = {2, 3};
  Check(desc);
  desc.strides = {2, 2};
  Check(desc);
  desc = Image(1, 16, 28, 128, 256, 2);
  desc.low = desc.high = {0, 0};
  desc.strides = {2, 2};
  Check(desc);
  desc = Image(1, 15, 28, 512, 192, 1);
  desc.strides = {2, 2};
  Check(desc);
}

// Products on AMX have more rows.
TEST_P(DeviceWindowConvTest, PointwiseOfFewPixels) {
  Check(Image(1, 9, 7, 512, 256, 1));
}

TEST_P(DeviceWindowConvTest, BiasActivationResidual) {
  for (const Activation activation :
       {Activation::kNone, Activation::kRelu, Activation::kSilu}) {
    for (const bool bias : {false, true}) {
      for (const bool residual : {false, true}) {
        SCOPED_TRACE(::testing::Message()
                     << static_cast<int>(activation) << bias << residual);
        ConvDesc desc = Image(1, 9, 14, 64, 61, 3);
        desc.activation = activation;
        desc.has_bias = bias;
        desc.has_residual = residual;
        desc.activates_sum = residual && activation != Activation::kNone;
        Check(desc);
        desc.residual_in_out = residual;
        if (residual && !GetParam().IsGpu()) Check(desc);
      }
    }
  }
}

// oneDNN computes other calls, and what it computes faster.
TEST_P(DeviceWindowConvTest, OthersDoNotUseAmx) {
  const auto run = [&](const ConvDesc& desc, bool constant) {
    const ConvDesc finished = Finished(desc);
    const Operands operands = OperandsOf(finished);
    const std::vector<float> found =
        Run(finished, operands, constant, /*expect_amx=*/false);
    if (Executes()) ExpectNear(Expected(finished, operands), found, 2e-5);
  };
  run(Image(1, 14, 14, 64, 64, 3), /*constant=*/false);
  run(Image(1, 14, 14, 3, 64, 3), /*constant=*/true);
  run(Image(1, 14, 14, 48, 48, 3), /*constant=*/true);
  ConvDesc desc = Image(1, 14, 14, 128, 64, 3);
  desc.groups = 2;
  desc.weight_shape[1] = 64;
  run(desc, /*constant=*/true);
  desc = Image(1, 14, 14, 64, 64, 3);
  desc.activation = Activation::kRelu;
  desc.has_residual = true;  // added after the activation
  run(desc, /*constant=*/true);
}

// The root of the mean square error of the elements.
double Error(const std::vector<float>& expected,
             const std::vector<float>& found) {
  double sum = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double error = static_cast<double>(found[i]) - expected[i];
    sum += error * error;
  }
  return std::sqrt(sum / static_cast<double>(expected.size()));
}

// oneDNN computes the variable weight.
TEST_P(DeviceWindowConvTest, ErrorsAreNoLargerThanOneDnns) {
  if (!Executes() || GetParam().IsGpu()) GTEST_SKIP() << "not a CPU";
  for (const int64_t channels : {64, 512}) {
    SCOPED_TRACE(channels);
    const ConvDesc desc = Finished(Image(1, 9, 14, channels, 64, 3));
    const Operands operands = OperandsOf(desc);
    const std::vector<float> expected = Expected(desc, operands);
    EXPECT_LE(Error(expected, Run(desc, operands)),
              1.001 * Error(expected, Run(desc, operands, /*constant=*/false)));
  }
}

float FloatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// Numbers of the input that have no parts in bf16, or few.
TEST_P(DeviceWindowConvTest, LargeAndSmallNumbers) {
  if (!Executes() || GetParam().IsGpu()) GTEST_SKIP() << "not a CPU";
  const float infinity = std::numeric_limits<float>::infinity(),
              most = std::numeric_limits<float>::max();
  for (const int64_t stride : {1, 2}) {
    constexpr int64_t kWidth = 31, kChannels = 96;
    ConvDesc desc = Image(1, 15, kWidth, kChannels, 64, 3);
    desc.strides = {stride, stride};
    desc.has_bias = true;
    desc = Finished(desc);
    Operands operands = OperandsOf(desc);
    const auto at = [&](int64_t row, int64_t column,
                        int64_t channel) -> float& {
      return operands.input[static_cast<size_t>(
          (row * kWidth + column) * kChannels + channel)];
    };
    at(0, 0, 0) = infinity;
    at(7, 30, 95) = -infinity;
    at(14, 12, 70) = FloatOf(0x7fffffff);  // NaN
    at(3, 3, 3) = most;
    at(3, 13, 90) = -most;
    at(9, 9, 9) = 1e30f;
    for (int64_t i = 0; i < kChannels; ++i) at(12, 20, i) *= 1e-30f;
    operands.weight[static_cast<size_t>((5 * kChannels + 9) * 9 + 4)] = 1e30f;
    const std::vector<float> expected = Expected(desc, operands),
                             found = Run(desc, operands);
    for (size_t i = 0; i < expected.size(); ++i) {
      SCOPED_TRACE(::testing::Message() << stride << ", element " << i);
      if (std::isnan(expected[i])) {
        EXPECT_TRUE(std::isnan(found[i])) << found[i];
      } else if (std::isinf(expected[i])) {
        EXPECT_EQ(found[i], expected[i]);
      } else {
        EXPECT_NEAR(found[i], expected[i],
                    2e-5 * std::max(1.0f, std::abs(expected[i])));
      }
    }
  }
}

TEST_P(DeviceWindowConvTest, TinyNumbers) {
  if (!Executes()) GTEST_SKIP() << "null computes nothing";
  const ConvDesc desc = Finished(Image(1, 7, 16, 64, 64, 3));
  for (float scale = 1e-32f; scale > 1e-43f; scale /= 100) {
    SCOPED_TRACE(scale);
    Operands operands = OperandsOf(desc);
    for (size_t i = 12; i < operands.input.size(); i += 64)
      operands.input[i] *= scale;
    for (size_t i = 22 * 9; i < operands.weight.size(); i += 64 * 9)
      operands.weight[i] *= scale;
    ExpectNear(Expected(desc, operands), Run(desc, operands), 2e-5);
  }
}

// A weight without parts is oneDNN's.
TEST_P(DeviceWindowConvTest, LargeWeights) {
  if (!Executes() || GetParam().IsGpu()) GTEST_SKIP() << "not a CPU";
  const ConvDesc desc = Finished(Image(1, 14, 14, 64, 64, 3));
  for (const float value : {std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN(), 2e38f}) {
    Operands operands = OperandsOf(desc);
    operands.weight[100] = value;
    const std::vector<float> expected = Expected(desc, operands),
                             found = Run(desc, operands, /*constant=*/true,
                                         /*expect_amx=*/false);
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(std::isfinite(found[i]), std::isfinite(expected[i])) << i;
      if (std::isfinite(expected[i])) {
        ASSERT_NEAR(found[i], expected[i],
                    2e-5 * std::max(1.0f, std::abs(expected[i])))
            << i;
      }
    }
  }
}

// Strides and dilations decide the order in which a weight is packed.
TEST_P(DeviceWindowConvTest, SharedWeights) {
  if (!Executes()) GTEST_SKIP() << "null computes nothing";
  std::vector<ConvDesc> descs(3, Image(1, 15, 31, 96, 64, 3));
  descs[1].strides = descs[2].strides = {2, 2};
  descs[2].dilations = {2, 2};
  for (ConvDesc& desc : descs) desc = Finished(desc);
  const Operands operands = OperandsOf(descs[0]);
  const device::Allocation input = Put(operands.input),
                           weight = Put(operands.weight);
  std::vector<std::unique_ptr<device::LibraryOp>> alive;
  for (const ConvDesc& desc : descs) {
    std::vector<float> found(static_cast<size_t>(Count(desc.out_shape)));
    const device::Allocation out = Put(found);
    void* buffers[] = {input.data(), weight.data(), out.data()};
    const std::vector<const void*> constants = {nullptr, weight.data(),
                                                nullptr};
    auto op = device_->PrepareConv(desc, constants);
    ASSERT_TRUE(op.ok()) << op.status();
    ExpectAmx(**op, true);
    ASSERT_TRUE(device_->Execute(*stream_, **op, buffers, 3).ok());
    Download(out, found.data());
    ExpectNear(Expected(desc, operands), found, 2e-5);
    alive.push_back(*std::move(op));
  }
}

TEST_P(DeviceWindowConvTest, ThreadsDoNotChangeResults) {
  if (!Executes() || GetParam().IsGpu()) GTEST_SKIP() << "not a CPU";
  for (const int64_t stride : {1, 2}) {
    ConvDesc desc = Image(3, 14, 14, 256, 128, 3);
    desc.strides = {stride, stride};
    desc = Finished(desc);
    const Operands operands = OperandsOf(desc);
    std::vector<float> first;
    for (const int threads : {1, 2, 3, 8}) {
      DeviceUnderTest device = GetParam();
      device.threads = threads;
      device_ = MakeDevice(device);
      const std::vector<float> found = Run(desc, operands);
      if (first.empty()) {
        first = found;
        ExpectNear(Expected(desc, operands), found, 2e-5);
      }
      EXPECT_EQ(found, first) << threads;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceWindowConvTest,
                         ::testing::ValuesIn(AllDevices()), DeviceName);

}  // namespace
}  // namespace partita::conformance
