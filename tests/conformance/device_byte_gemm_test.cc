// Compares matrix products with factors of 8 bits with plain loops.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/device_fixture.h"

namespace partita::conformance {
namespace {

using device::Factors;
using device::GemmDesc;

struct Layout {
  bool lhs_transposed = false, rhs_transposed = false, has_gaps = false;
};

GemmDesc Describe(Factors factors, int64_t batch, int64_t m, int64_t n,
                  int64_t k, Layout layout = {}) {
  GemmDesc desc;
  desc.factors = factors;
  desc.batch = batch, desc.m = m, desc.n = n, desc.k = k;
  const int64_t gap = layout.has_gaps ? 5 : 0;
  desc.lhs_strides = {m * (k + gap), k + gap, 1};
  if (layout.lhs_transposed) desc.lhs_strides = {k * (m + gap), 1, m + gap};
  desc.rhs_strides = {0, n + gap, 1};
  if (layout.rhs_transposed) desc.rhs_strides = {0, 1, k + gap};
  desc.out_strides = {m * (n + gap), n + gap, 1};
  return desc;
}

size_t Index(const std::array<int64_t, 3>& strides, int64_t a, int64_t b,
             int64_t c) {
  return static_cast<size_t>(a * strides[0] + b * strides[1] + c * strides[2]);
}

class DeviceByteGemmTest : public DeviceTest {
 protected:
  template <typename T>
  device::Allocation Put(const std::vector<T>& values) {
    return Upload(values.data(),
                  static_cast<int64_t>(values.size() * sizeof(T)));
  }

  void Check(GemmDesc desc) {
    for (const bool has_bias : {false, true})
      for (const bool constant : {false, true}) {
        desc.has_bias = has_bias;
        SCOPED_TRACE(::testing::Message() << desc.m << "x" << desc.n << "x"
                                          << desc.k << (has_bias ? " bias" : "")
                                          << (constant ? " constant" : ""));
        CheckOnce(desc, constant);
      }
  }

 private:
  // Integers in [low, high], the bounds among them.
  static std::vector<int> Integers(size_t count, int low, int high,
                                   uint64_t seed) {
    const std::vector<float> values = Values(static_cast<int64_t>(count), seed);
    std::vector<int> integers;
    for (const float value : values)
      integers.push_back(low +
                         static_cast<int>((value + 1) / 2 *
                                          static_cast<float>(high - low + 1)));
    integers.front() = low;
    integers.back() = high;
    return integers;
  }

  device::Allocation PutBytes(const std::vector<int>& values) {
    return Put(std::vector<int8_t>(values.begin(), values.end()));
  }

  void CheckOnce(const GemmDesc& desc, bool constant) {
    const size_t lhs_size =
        Index(desc.lhs_strides, desc.batch - 1, desc.m - 1, desc.k - 1) + 1;
    const size_t rhs_size =
        Index(desc.rhs_strides, desc.batch - 1, desc.k - 1, desc.n - 1) + 1;
    const size_t out_size =
        Index(desc.out_strides, desc.batch - 1, desc.m - 1, desc.n - 1) + 1;
    const std::vector<int> rhs = Integers(rhs_size, -128, 127, 1);
    const std::vector<float> scale = Values(desc.n, 2),
                             bias = Values(desc.n, 3);
    std::vector<float> lhs = Values(static_cast<int64_t>(lhs_size), 4);
    device::Allocation lhs_memory = Put(lhs);
    if (desc.factors != Factors::kRhsI8) {
      const bool is_unsigned = desc.factors == Factors::kU8I8;
      const std::vector<int> integers = Integers(
          lhs_size, is_unsigned ? 0 : -128, is_unsigned ? 255 : 127, 5);
      lhs.assign(integers.begin(), integers.end());
      lhs_memory = PutBytes(integers);
    }
    const device::Allocation rhs_memory = PutBytes(rhs),
                             scale_memory = Put(scale), bias_memory = Put(bias);
    std::vector<float> expected = Values(static_cast<int64_t>(out_size), 6);
    const device::Allocation out = Put(expected);
    for (int64_t b = 0; b < desc.batch; ++b)
      for (int64_t i = 0; i < desc.m; ++i)
        for (int64_t j = 0; j < desc.n; ++j) {
          double sum = 0;
          for (int64_t k = 0; k < desc.k; ++k)
            sum += static_cast<double>(lhs[Index(desc.lhs_strides, b, i, k)]) *
                   rhs[Index(desc.rhs_strides, b, k, j)];
          expected[Index(desc.out_strides, b, i, j)] = static_cast<float>(
              sum * scale[static_cast<size_t>(j)] +
              (desc.has_bias ? bias[static_cast<size_t>(j)] : 0.0F));
        }
    std::vector<void*> buffers = {lhs_memory.data(), rhs_memory.data(),
                                  scale_memory.data()};
    if (desc.has_bias) buffers.push_back(bias_memory.data());
    buffers.push_back(out.data());
    std::vector<const void*> constants(buffers.size(), nullptr);
    if (constant) constants[1] = buffers[1];
    absl::StatusOr<std::unique_ptr<device::LibraryOp>> op =
        device_->PrepareGemm(desc, constants);
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
    std::vector<float> found(out_size);
    Download(out, found.data());
    if (Executes()) ExpectNear(expected, found, 1e-5 * desc.k);
  }
};

// Sums of integers are exact.
TEST_P(DeviceByteGemmTest, Sums) {
  if (GetParam().IsGpu()) return;
  for (const bool is_unsigned : {false, true}) {
    GemmDesc desc = Describe(is_unsigned ? Factors::kU8I8 : Factors::kI8, 1, 20,
                             70, 300, {false, true, false});
    desc.dtype = base::DType::kI32;
    std::vector<int8_t> lhs, rhs;
    for (int64_t i = 0; i < desc.m * desc.k; ++i)
      lhs.push_back(static_cast<int8_t>(i * 37 + i / 7));
    for (int64_t i = 0; i < desc.n * desc.k; ++i)
      rhs.push_back(static_cast<int8_t>(i * 91 + i / 5));
    std::vector<int32_t> expected, found(static_cast<size_t>(desc.m * desc.n));
    for (int64_t i = 0; i < desc.m; ++i)
      for (int64_t j = 0; j < desc.n; ++j) {
        int32_t sum = 0;
        for (int64_t k = 0; k < desc.k; ++k) {
          const int8_t left = lhs[static_cast<size_t>(i * desc.k + k)];
          sum += (is_unsigned ? static_cast<int>(static_cast<uint8_t>(left))
                              : static_cast<int>(left)) *
                 rhs[static_cast<size_t>(j * desc.k + k)];
        }
        expected.push_back(sum);
      }
    const device::Allocation a = Put(lhs), b = Put(rhs), out = Put(found);
    absl::StatusOr<std::unique_ptr<device::LibraryOp>> op =
        device_->PrepareGemm(desc, {nullptr, b.data(), nullptr});
    ASSERT_TRUE(op.ok()) << op.status();
    void* buffers[] = {a.data(), b.data(), out.data()};
    ASSERT_TRUE(device_->Execute(*stream_, **op, buffers, 3).ok());
    Download(out, found.data());
    if (Executes()) EXPECT_EQ(found, expected);
  }
}

constexpr Factors kAll[] = {Factors::kRhsI8, Factors::kI8, Factors::kU8I8};

TEST_P(DeviceByteGemmTest, Sizes) {
  for (const Factors factors : kAll)
    for (const int64_t m : {1, 5, 17, 40})
      for (const int64_t n : {1, 15, 100})
        for (const int64_t k : {1, 130}) Check(Describe(factors, 1, m, n, k));
}

TEST_P(DeviceByteGemmTest, Layouts) {
  for (const Factors factors : kAll)
    for (const int64_t m : {5, 40})
      for (const int64_t batch : {1, 3})
        for (int bits = 0; bits < 8; ++bits) {
          SCOPED_TRACE(bits);
          Check(Describe(factors, batch, m, 70, 33,
                         {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0}));
        }
}

// Several blocks of rows, panels of columns, and rests of both.
TEST_P(DeviceByteGemmTest, Large) {
  for (const Factors factors : kAll) {
    Check(Describe(factors, 1, 300, 1000, 768));
    Check(Describe(factors, 1, 4, 500, 3072, {false, true, false}));
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceByteGemmTest,
                         ::testing::ValuesIn(AllDevices()), DeviceName);

}  // namespace
}  // namespace partita::conformance
