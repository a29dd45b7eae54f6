// Compares convolutions of integers of 8 bits with plain loops.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/device_fixture.h"

namespace partita::conformance {
namespace {

using base::DType;
using device::Activation;
using device::ConvDesc;
using device::Factors;

int64_t Product(const std::vector<int64_t>& shape) {
  int64_t product = 1;
  for (const int64_t size : shape) product *= size;
  return product;
}

// Of images [N, H, W, C], padded at their low ends if `pads`.
ConvDesc Images(std::vector<int64_t> input, int64_t outputs, int64_t kernel,
                int64_t stride, bool pads, int64_t groups = 1) {
  ConvDesc desc;
  desc.input_shape = std::move(input);
  desc.weight_shape = {outputs, desc.input_shape[3] / groups, kernel, kernel};
  desc.strides = {stride, stride};
  desc.dilations = {1, 1};
  desc.low = {pads ? 1 : 0, pads ? 1 : 0};
  desc.high = {0, pads ? 2 : 0};
  desc.groups = groups;
  desc.channels_last = true;
  desc.out_shape = {desc.input_shape[0]};
  for (size_t i = 0; i < 2; ++i)
    desc.out_shape.push_back(
        (desc.low[i] + desc.input_shape[1 + i] + desc.high[i] - kernel) /
            stride +
        1);
  desc.out_shape.push_back(outputs);
  desc.factors = Factors::kU8I8;
  return desc;
}

std::vector<int> Integers(int64_t count, int low, int high, uint64_t seed) {
  std::vector<int> integers;
  for (const float value : Values(count, seed))
    integers.push_back(low + static_cast<int>((value + 1) / 2 *
                                              static_cast<float>(high - low)));
  integers.front() = low;
  integers.back() = high;
  return integers;
}

class DeviceByteConvTest : public DeviceTest {
 protected:
  template <typename T>
  device::Allocation Put(const std::vector<T>& values) {
    return Upload(values.data(),
                  static_cast<int64_t>(values.size() * sizeof(T)));
  }
  device::Allocation PutBytes(const std::vector<int>& values) {
    return Put(std::vector<int8_t>(values.begin(), values.end()));
  }

  // With and without each of zero points, biases, activations, rounding and
  // constant operands.
  void Check(ConvDesc desc) {
    for (const Factors factors : {Factors::kU8I8, Factors::kI8})
      for (const bool has_bias : {false, true})
        for (const int zero : {0, 7})
          for (const Activation activation :
               {Activation::kNone, Activation::kRelu})
            for (const DType dtype : {DType::kF32, DType::kU8, DType::kI8})
              for (const bool constant : {false, true}) {
                desc.factors = factors;
                desc.has_bias = has_bias;
                desc.has_zero = zero != 0;
                desc.activation = activation;
                desc.dtype = dtype;
                SCOPED_TRACE(::testing::Message()
                             << (factors == Factors::kI8 ? "i8" : "u8")
                             << (has_bias ? " bias" : "") << " zero " << zero
                             << " activation " << static_cast<int>(activation)
                             << " to " << base::NameOf(dtype)
                             << (constant ? " constant" : ""));
                for (const int result_zero :
                     {dtype == DType::kI8 ? -128 : 0, 3})
                  if (desc.rounds() || result_zero == 3)
                    CheckOnce(desc, zero, result_zero, constant);
              }
  }

  void CheckOnce(const ConvDesc& desc, int zero, int result_zero,
                 bool constant) {
    const bool is_unsigned = desc.factors == Factors::kU8I8;
    const std::vector<int> input =
        Integers(Product(desc.input_shape), is_unsigned ? 0 : -128,
                 is_unsigned ? 255 : 127, 1);
    const std::vector<int> weight =
        Integers(Product(desc.weight_shape), -127, 127, 2);
    const int64_t channels = desc.weight_shape[0],
                  outputs = Product(desc.out_shape);
    std::vector<float> scale = Values(channels, 3), bias = Values(channels, 4),
                       residual = Values(outputs, 5);
    for (float& each : scale) each = 1e-4F * (1.5F + each);
    const std::vector<float> result_scale = {0.01F};
    const std::vector<int32_t> zeros = {zero}, result_zeros = {result_zero};
    std::vector<float> expected(static_cast<size_t>(outputs));
    Expect(desc, input, weight, zero, scale, bias, residual, expected);

    const device::Allocation input_memory = PutBytes(input),
                             weight_memory = PutBytes(weight),
                             scale_memory = Put(scale), bias_memory = Put(bias),
                             residual_memory = Put(residual),
                             zero_memory = Put(zeros),
                             result_scale_memory = Put(result_scale),
                             result_zero_memory = Put(result_zeros),
                             out = Put(expected);
    std::vector<void*> buffers = {input_memory.data(), weight_memory.data(),
                                  scale_memory.data()};
    if (desc.has_zero) buffers.push_back(zero_memory.data());
    if (desc.has_bias) buffers.push_back(bias_memory.data());
    std::vector<const void*> constants(buffers.size(), nullptr);
    if (constant) constants.assign(buffers.begin(), buffers.end());
    constants[0] = nullptr;
    if (desc.has_residual) {
      buffers.push_back(residual_memory.data());
      constants.push_back(nullptr);
    }
    if (desc.rounds())
      for (void* data :
           {result_scale_memory.data(), result_zero_memory.data()}) {
        buffers.push_back(data);
        constants.push_back(constant ? data : nullptr);
      }
    buffers.push_back(out.data());
    constants.push_back(nullptr);
    ASSERT_EQ(static_cast<int>(buffers.size()), OperandCount(desc));
    absl::StatusOr<std::unique_ptr<device::LibraryOp>> op =
        device_->PrepareConv(desc, constants);
    if (GetParam().IsGpu()) {
      EXPECT_TRUE(absl::IsUnimplemented(op.status())) << op.status();
      return;
    }
    ASSERT_TRUE(op.ok()) << op.status();
    for (int repeat = 0; repeat < 2; ++repeat)
      ASSERT_TRUE(device_
                      ->Execute(*stream_, **op, buffers.data(),
                                static_cast<int>(buffers.size()))
                      .ok());
    if (!Executes()) return;
    if (!desc.rounds()) {
      std::vector<float> found(expected.size());
      Download(out, found.data());
      ExpectNear(expected, found, 2e-6);
      return;
    }
    const device::Allocation bytes = Allocate(outputs);
    buffers.back() = bytes.data();
    ASSERT_TRUE(device_
                    ->Execute(*stream_, **op, buffers.data(),
                              static_cast<int>(buffers.size()))
                    .ok());
    std::vector<int8_t> found(expected.size());
    Download(bytes, found.data());
    CompareRounded(desc, expected, result_scale[0], result_zero, found);
  }

 private:
  static void Expect(const ConvDesc& desc, const std::vector<int>& input,
                     const std::vector<int>& weight, int zero,
                     const std::vector<float>& scale,
                     const std::vector<float>& bias,
                     const std::vector<float>& residual,
                     std::vector<float>& expected) {
    std::vector<float> steps;
    for (const int each : input)
      steps.push_back(static_cast<float>(each - zero));
    ConvDesc plain;
    plain = desc;
    plain.dtype = DType::kF32;
    plain.has_bias = plain.has_residual = plain.activates_sum = false;
    plain.activation = Activation::kNone;
    ReferenceConv(plain, steps, {weight.begin(), weight.end()}, {}, {},
                  expected);
    const size_t channels = scale.size();
    for (size_t i = 0; i < expected.size(); ++i) {
      const size_t o = i % channels;
      float value = scale[o] * expected[i] + (desc.has_bias ? bias[o] : 0.0F);
      if (desc.has_residual && desc.activates_sum) value += residual[i];
      if (desc.activation == Activation::kRelu) value = std::max(value, 0.0F);
      if (desc.has_residual && !desc.activates_sum) value += residual[i];
      expected[i] = value;
    }
  }

  // Numbers between two integers may become either.
  static void CompareRounded(const ConvDesc& desc,
                             const std::vector<float>& expected, float scale,
                             int zero, const std::vector<int8_t>& found) {
    const bool is_unsigned = desc.dtype == DType::kU8;
    size_t wrong = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      const double exact = std::clamp<double>(
          static_cast<double>(expected[i]) / static_cast<double>(scale) + zero,
          is_unsigned ? 0 : -128, is_unsigned ? 255 : 127);
      const int integer = is_unsigned ? static_cast<uint8_t>(found[i])
                                      : static_cast<int>(found[i]);
      wrong += std::abs(integer - exact) > 0.501;
    }
    EXPECT_EQ(wrong, 0U) << "of " << expected.size();
  }
};

TEST_P(DeviceByteConvTest, Pointwise) {
  Check(Images({2, 5, 6, 32}, 48, 1, 1, /*pads=*/false));
  Check(Images({1, 4, 5, 20}, 7, 1, 2, /*pads=*/false));
}

TEST_P(DeviceByteConvTest, Windows) {
  Check(Images({2, 5, 6, 32}, 16, 3, 1, /*pads=*/true));
  Check(Images({1, 8, 7, 3}, 16, 3, 2, /*pads=*/true));
}

TEST_P(DeviceByteConvTest, Groups) {
  Check(Images({1, 5, 6, 32}, 32, 3, 1, /*pads=*/true, /*groups=*/4));
  Check(Images({1, 5, 6, 32}, 32, 3, 2, /*pads=*/true, /*groups=*/32));
}

TEST_P(DeviceByteConvTest, ChannelsFirst) {
  ConvDesc desc = Images({2, 9, 9, 32}, 1, 9, 1, /*pads=*/false);
  desc.channels_last = false;
  desc.input_shape = {2, 32, 9, 9};
  desc.out_shape = {2, 1, 1, 1};
  CheckOnce(desc, 0, 0, /*constant=*/true);
}

TEST_P(DeviceByteConvTest, Residuals) {
  for (const bool constant : {false, true})
    for (const bool activates_sum : {false, true}) {
      ConvDesc desc = Images({2, 9, 9, 32}, 32, 1, 1, /*pads=*/false);
      desc.has_bias = desc.has_residual = true;
      desc.activation = Activation::kRelu;
      desc.activates_sum = activates_sum;
      CheckOnce(desc, 0, 0, constant);
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceByteConvTest,
                         ::testing::ValuesIn(AllDevices()), DeviceName);

}  // namespace
}  // namespace partita::conformance
