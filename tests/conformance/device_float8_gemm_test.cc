// Compares matrix products of floats of 8 bits with plain loops on GPUs. CPUs
// refuse them.
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
using device::Factors;
using device::GemmDesc;

// Without `contiguous`, the library has no such product: an own kernel computes
// it.
GemmDesc Describe(Factors factors, int64_t batch, int64_t m, int64_t n,
                  int64_t k, bool contiguous = true, int64_t gap = 0) {
  GemmDesc desc;
  desc.dtype = base::DType::kBF16;
  desc.factors = factors;
  desc.batch = batch, desc.m = m, desc.n = n, desc.k = k;
  desc.lhs_strides = {m * (k + gap), k + gap, 1};
  desc.rhs_strides = {n * (k + gap), 1, k + gap};
  if (!contiguous) desc.rhs_strides = {n * k, n, 1};
  desc.out_strides = {m * (n + gap), n + gap, 1};
  return desc;
}

size_t Index(const std::array<int64_t, 3>& strides, int64_t a, int64_t b,
             int64_t c) {
  return static_cast<size_t>(a * strides[0] + b * strides[1] + c * strides[2]);
}

// All finite numbers, in turn.
std::vector<uint8_t> Bytes(size_t count, bool e5m2, int seed) {
  const int finite = e5m2 ? 0x7c : 0x7f;  // of one sign
  std::vector<uint8_t> bytes(count);
  for (size_t i = 0; i < count; ++i) {
    const int number = (static_cast<int>(i) * 37 + seed) % (2 * finite);
    bytes[i] =
        static_cast<uint8_t>(number < finite ? number : 0x80 + number - finite);
  }
  return bytes;
}

class DeviceFloat8GemmTest : public DeviceTest {
 protected:
  // Operands at `offset` bytes from the alignment of allocations.
  void Check(GemmDesc desc, bool expects_library, int64_t offset = 0) {
    for (const bool has_bias : {false, true}) {
      desc.has_bias = has_bias;
      SCOPED_TRACE(::testing::Message()
                   << desc.m << "x" << desc.n << "x" << desc.k
                   << (has_bias ? " bias" : "") << " factors "
                   << static_cast<int>(desc.factors));
      CheckOnce(desc, expects_library && HasLibrary(), offset);
    }
  }

 private:
  static bool IsRecorded() { return GetParam().name.rfind("recorded", 0) == 0; }
  static bool HasLibrary() { return GetParam().blas != "none"; }

  device::Allocation Put(const std::string& bytes, int64_t offset) {
    const std::string moved = std::string(static_cast<size_t>(offset), 0);
    const std::string all = moved + bytes;
    return Upload(all.data(), static_cast<int64_t>(all.size()));
  }

  void CheckOnce(const GemmDesc& desc, bool expects_library, int64_t offset) {
    const bool is_lhs_e5m2 = desc.factors == Factors::kF8LhsE5M2,
               is_rhs_e5m2 = desc.factors == Factors::kF8RhsE5M2;
    const size_t out_size =
        Index(desc.out_strides, desc.batch - 1, desc.m - 1, desc.n - 1) + 1;
    const std::vector<uint8_t> lhs = Bytes(
        Index(desc.lhs_strides, desc.batch - 1, desc.m - 1, desc.k - 1) + 1,
        is_lhs_e5m2, 5);
    const std::vector<uint8_t> rhs = Bytes(
        Index(desc.rhs_strides, desc.batch - 1, desc.k - 1, desc.n - 1) + 1,
        is_rhs_e5m2, 11);
    // Sums up to 2^24 become numbers near 1.
    const float scale = 0x1p-16F;
    const std::vector<float> bias =
        Decode(desc.dtype, Encode(desc.dtype, Values(desc.n, 3)));
    const std::vector<float> before =
        Decode(desc.dtype,
               Encode(desc.dtype, Values(static_cast<int64_t>(out_size), 6)));
    std::vector<float> lhs_values, rhs_values;
    for (const uint8_t bits : lhs)
      lhs_values.push_back(is_lhs_e5m2 ? base::Float8E5M2ToFloat(bits)
                                       : base::Float8E4M3ToFloat(bits));
    for (const uint8_t bits : rhs)
      rhs_values.push_back(is_rhs_e5m2 ? base::Float8E5M2ToFloat(bits)
                                       : base::Float8E4M3ToFloat(bits));
    std::vector<device::Allocation> memory;
    memory.push_back(Put({lhs.begin(), lhs.end()}, offset));
    memory.push_back(Put({rhs.begin(), rhs.end()}, offset));
    memory.push_back(
        Put({reinterpret_cast<const char*>(&scale), sizeof(scale)}, 0));
    if (desc.has_bias) memory.push_back(Put(Encode(desc.dtype, bias), offset));
    memory.push_back(Put(Encode(desc.dtype, before), offset));
    std::vector<void*> buffers;
    for (size_t i = 0; i < memory.size(); ++i)
      buffers.push_back(static_cast<char*>(memory[i].data()) +
                        (i == 2 ? 0 : offset));
    const absl::StatusOr<std::unique_ptr<device::LibraryOp>> op =
        device_->PrepareGemm(desc,
                             std::vector<const void*>(buffers.size(), nullptr));
    if (!GetParam().IsGpu()) {
      if (!Executes()) return;
      EXPECT_TRUE(absl::IsUnimplemented(op.status())) << op.status();
      return;
    }
    ASSERT_TRUE(op.ok()) << op.status();

    if (IsRecorded())
      EXPECT_EQ((*op)->Description() == "own kernel", !expects_library);
    for (int repeat = 0; repeat < 2; ++repeat)
      ASSERT_TRUE(device_
                      ->Execute(*stream_, **op, buffers.data(),
                                static_cast<int>(buffers.size()))
                      .ok());
    std::string bytes(out_size * 2 + static_cast<size_t>(offset), 0);
    Download(memory.back(), bytes.data());
    const std::vector<float> found =
        Decode(desc.dtype, bytes.substr(static_cast<size_t>(offset)));
    std::vector<float> expected = before;
    std::vector<double> tolerance(out_size, 0);
    for (int64_t b = 0; b < desc.batch; ++b)
      for (int64_t i = 0; i < desc.m; ++i)
        for (int64_t j = 0; j < desc.n; ++j) {
          double sum = 0, sizes = 0;
          for (int64_t k = 0; k < desc.k; ++k) {
            const double product =
                double{lhs_values[Index(desc.lhs_strides, b, i, k)]} *
                rhs_values[Index(desc.rhs_strides, b, k, j)];
            sum += product;
            sizes += std::abs(product);
          }
          sum = sum * scale +
                (desc.has_bias ? bias[static_cast<size_t>(j)] : 0.0F);
          const size_t at = Index(desc.out_strides, b, i, j);
          if (desc.activation == Activation::kSilu) sum /= 1 + std::exp(-sum);
          expected[at] = static_cast<float>(sum);
          // Half a unit of bf16. Tensor cores of sm_90 sum 8-bit floats with 14
          // bits.
          tolerance[at] =
              std::abs(sum) * 0x1p-8 + sizes * scale * 0x1p-13 + 1e-6;
        }
    for (size_t i = 0; i < out_size; ++i)
      ASSERT_NEAR(found[i], expected[i], tolerance[i]) << "element " << i;
  }
};

constexpr Factors kAll[] = {Factors::kF8, Factors::kF8LhsE5M2,
                            Factors::kF8RhsE5M2};

TEST_P(DeviceFloat8GemmTest, MultipliesWhatTheLibraryHas) {
  for (const Factors factors : kAll) {
    Check(Describe(factors, 1, 16, 32, 48), true);
    Check(Describe(factors, 2, 32, 16, 16), true);
    Check(Describe(factors, 1, 32, 16, 32, /*contiguous=*/true, /*gap=*/16),
          true);
  }
}

TEST_P(DeviceFloat8GemmTest, MultipliesWhatTheLibraryLacks) {
  for (const Factors factors : kAll) {
    Check(Describe(factors, 1, 16, 32, 48, /*contiguous=*/false), false);
    Check(Describe(factors, 1, 7, 16, 16), false);
    Check(Describe(factors, 2, 3, 5, 9, /*contiguous=*/true, /*gap=*/1), false);
  }
}

TEST_P(DeviceFloat8GemmTest, MultipliesBadlyAlignedOperands) {
  Check(Describe(Factors::kF8, 1, 16, 32, 48), true, 2);
}

TEST_P(DeviceFloat8GemmTest, ActivatesBehindTheLibrary) {
  GemmDesc desc = Describe(Factors::kF8, 1, 16, 32, 48);
  desc.activation = Activation::kSilu;
  Check(desc, true);
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceFloat8GemmTest,
                         ::testing::ValuesIn(AllDevices()), DeviceName);

}  // namespace
}  // namespace partita::conformance
