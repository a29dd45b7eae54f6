// Compares products with pre-activations, their gradients and sums of factors
// with plain loops on GPUs. CPUs refuse them.
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/device_fixture.h"

namespace partita::conformance {
namespace {

using device::Activation;
using device::GemmDesc;
using device::Preactivation;
using device::Sums;

GemmDesc Dense(base::DType dtype, int64_t batch, int64_t m, int64_t n,
               int64_t k) {
  GemmDesc desc;
  desc.dtype = dtype;
  desc.batch = batch, desc.m = m, desc.n = n, desc.k = k;
  desc.lhs_strides = {m * k, k, 1};
  desc.rhs_strides = {k * n, n, 1};
  desc.out_strides = {m * n, n, 1};
  return desc;
}

size_t At(const std::array<int64_t, 3>& strides, int64_t a, int64_t b,
          int64_t c) {
  return static_cast<size_t>(a * strides[0] + b * strides[1] + c * strides[2]);
}

double Gelu(double x) {
  return 0.5 * x *
         (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

// A central difference.
double GeluGradient(double x) {
  return (Gelu(x + 1e-5) - Gelu(x - 1e-5)) / 2e-5;
}

class DeviceTrainingGemmTest : public DeviceTest {
 protected:
  // Operands at `offset` bytes from the alignment of allocations.
  void Check(const GemmDesc& desc, double tolerance, int64_t offset = 0) {
    const size_t out_size =
        At(desc.out_strides, desc.batch - 1, desc.m - 1, desc.n - 1) + 1;
    const bool is_lhs = desc.sums == Sums::kLhs;
    const std::vector<float> lhs = Rounded(
        desc, At(desc.lhs_strides, desc.batch - 1, desc.m - 1, desc.k - 1) + 1);
    const std::vector<float> rhs = Rounded(
        desc, At(desc.rhs_strides, desc.batch - 1, desc.k - 1, desc.n - 1) + 1);
    const std::vector<float> bias = Rounded(desc, static_cast<size_t>(desc.n));
    const std::vector<float> given = Rounded(desc, out_size);
    // Memory between the elements must not change.
    std::vector<float> out = Rounded(desc, out_size), kept = out;
    std::vector<float> sums(static_cast<size_t>(is_lhs ? desc.m : desc.n));
    std::vector<device::Allocation> memory;
    memory.push_back(Put(desc, lhs, offset));
    memory.push_back(Put(desc, rhs, offset));
    if (desc.has_bias) memory.push_back(Put(desc, bias, offset));
    if (desc.preactivation == Preactivation::kGiven)
      memory.push_back(Put(desc, given, offset));
    const size_t out_at = memory.size();
    memory.push_back(Put(desc, out, offset));
    if (desc.preactivation == Preactivation::kKept)
      memory.push_back(Put(desc, kept, offset));
    if (desc.sums != Sums::kNone) memory.push_back(Put(desc, sums, offset));

    for (int64_t b = 0; b < desc.batch; ++b)
      for (int64_t m = 0; m < desc.m; ++m)
        for (int64_t n = 0; n < desc.n; ++n) {
          double sum = desc.has_bias ? bias[static_cast<size_t>(n)] : 0.0;
          for (int64_t k = 0; k < desc.k; ++k)
            sum += static_cast<double>(lhs[At(desc.lhs_strides, b, m, k)]) *
                   rhs[At(desc.rhs_strides, b, k, n)];
          const size_t at = At(desc.out_strides, b, m, n);
          kept[at] = static_cast<float>(sum);
          if (desc.preactivation == Preactivation::kGiven)
            sum *= GeluGradient(given[at]);
          else if (desc.activation == Activation::kGeluTanh)
            sum = Gelu(sum);
          out[at] = static_cast<float>(sum);
        }
    for (size_t i = 0; i < sums.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      double sum = 0;
      for (int64_t k = 0; k < desc.k; ++k)
        sum += is_lhs ? lhs[At(desc.lhs_strides, 0, at, k)]
                      : rhs[At(desc.rhs_strides, 0, k, at)];
      sums[i] = static_cast<float>(sum);
    }

    std::vector<void*> buffers;
    for (const device::Allocation& each : memory)
      buffers.push_back(each.data() + offset);
    auto op = device_->PrepareGemm(
        desc, std::vector<const void*>(buffers.size(), nullptr));
    if (Executes() && !GetParam().IsGpu()) {
      EXPECT_EQ(op.status().message(),
                "a CPU's product has no pre-activation and no sums; expected "
                "a program that was compiled for CPUs");
      return;
    }
    ASSERT_TRUE(op.ok()) << op.status();
    for (int repeat = 0; repeat < 2; ++repeat)
      ASSERT_TRUE(device_
                      ->Execute(*stream_, **op, buffers.data(),
                                static_cast<int>(buffers.size()))
                      .ok());
    if (!Executes()) return;
    Expect(desc, memory[out_at], offset, out, tolerance);
    if (desc.preactivation == Preactivation::kKept)
      Expect(desc, memory[out_at + 1], offset, kept, tolerance);
    if (desc.sums != Sums::kNone)
      Expect(desc, memory.back(), offset, sums, tolerance);
  }

 private:
  // Random values of the device's type.
  std::vector<float> Rounded(const GemmDesc& desc, size_t count) {
    return Decode(
        desc.dtype,
        Encode(desc.dtype, Values(static_cast<int64_t>(count), ++seed_)));
  }
  device::Allocation Put(const GemmDesc& desc, const std::vector<float>& values,
                         int64_t offset) {
    const std::string bytes = std::string(static_cast<size_t>(offset), '\0') +
                              Encode(desc.dtype, values);
    return Upload(bytes.data(), static_cast<int64_t>(bytes.size()));
  }
  void Expect(const GemmDesc& desc, const device::Allocation& memory,
              int64_t offset, const std::vector<float>& expected,
              double tolerance) {
    std::string bytes(static_cast<size_t>(memory.bytes()), '\0');
    Download(memory, bytes.data());
    ExpectNear(expected,
               Decode(desc.dtype, bytes.substr(static_cast<size_t>(offset))),
               tolerance);
  }

  uint64_t seed_ = 0;
};

constexpr double kBF16Tolerance = 8e-3, kF32Tolerance = 2e-5;

double ToleranceOf(base::DType dtype) {
  return dtype == base::DType::kF32   ? kF32Tolerance
         : dtype == base::DType::kF16 ? 1e-3
                                      : kBF16Tolerance;
}

TEST_P(DeviceTrainingGemmTest, PreactivationsAreKept) {
  for (const base::DType dtype :
       {base::DType::kF32, base::DType::kF16, base::DType::kBF16})
    for (const bool has_bias : {false, true})
      for (const int64_t batch : {1, 3})
        // The library has no rows of 12 elements.
        for (const int64_t n : {16, 12}) {
          SCOPED_TRACE(::testing::Message()
                       << base::NameOf(dtype) << has_bias << " batch " << batch
                       << " n " << n);
          GemmDesc desc = Dense(dtype, batch, 10, n, 24);
          desc.has_bias = has_bias;
          desc.activation = Activation::kGeluTanh;
          desc.preactivation = Preactivation::kKept;
          Check(desc, ToleranceOf(dtype));
          desc.rhs_strides = {n * 24, 1, 24};
          desc.out_strides = {10 * (n + 8), n + 8, 1};
          Check(desc, ToleranceOf(dtype));
          desc.out_strides = {n * 10, 1, 10};
          Check(desc, ToleranceOf(dtype));
        }
}

TEST_P(DeviceTrainingGemmTest, GradientsOfGivenPreactivations) {
  for (const base::DType dtype :
       {base::DType::kF32, base::DType::kF16, base::DType::kBF16})
    for (const int64_t batch : {1, 3})
      for (const int64_t n : {16, 12}) {
        SCOPED_TRACE(::testing::Message() << base::NameOf(dtype) << " batch "
                                          << batch << " n " << n);
        GemmDesc desc = Dense(dtype, batch, 10, n, 24);
        desc.activation = Activation::kGeluTanh;
        desc.preactivation = Preactivation::kGiven;
        Check(desc, ToleranceOf(dtype));
        desc.out_strides = {n * 16, 1, 16};
        Check(desc, ToleranceOf(dtype));
      }
}

TEST_P(DeviceTrainingGemmTest, SumsOfAFactor) {
  for (const Sums sums : {Sums::kLhs, Sums::kRhs})
    for (const base::DType dtype : {base::DType::kF32, base::DType::kBF16})
      for (const bool lhs_transposed : {false, true})
        for (const bool out_transposed : {false, true}) {
          SCOPED_TRACE(::testing::Message()
                       << static_cast<int>(sums) << base::NameOf(dtype)
                       << lhs_transposed << out_transposed);
          // As in the gradient of a weight, with several parts of the sum.
          GemmDesc desc = Dense(dtype, 1, 8, 24, 150);
          if (lhs_transposed) desc.lhs_strides = {8 * 150, 1, 8};
          if (out_transposed) desc.out_strides = {8 * 24, 1, 8};
          desc.sums = sums;
          Check(desc, dtype == base::DType::kF32 ? 1e-4 : kBF16Tolerance);
        }
}

TEST_P(DeviceTrainingGemmTest, BadlyAlignedOperands) {
  GemmDesc desc = Dense(base::DType::kBF16, 1, 10, 16, 24);
  desc.sums = Sums::kRhs;
  Check(desc, kBF16Tolerance, 2);
  desc.sums = Sums::kNone;
  desc.has_bias = true;
  desc.activation = Activation::kGeluTanh;
  desc.preactivation = Preactivation::kKept;
  Check(desc, kBF16Tolerance, 2);
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceTrainingGemmTest,
                         ::testing::ValuesIn(AllDevices()), DeviceName);

}  // namespace
}  // namespace partita::conformance
