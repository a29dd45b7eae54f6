// Compares matrix products with weights of 4 bits with plain loops.
#include <cstdint>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/device_fixture.h"

namespace partita::conformance {
namespace {

using device::Factors;
using device::GemmDesc;

// A weight [n, k], or [k, n] if `across`: the first dimension is not packed.
GemmDesc Describe(int64_t batch, int64_t m, int64_t n, int64_t k, int64_t group,
                  bool across = false) {
  GemmDesc desc;
  desc.factors = Factors::kRhsI4;
  desc.batch = batch, desc.m = m, desc.n = n, desc.k = k;
  desc.group = group;
  desc.lhs_strides = {m * k, k, 1};
  desc.rhs_strides = {0, 1, k};
  if (across) desc.rhs_strides = {0, n, 1};
  desc.out_strides = {m * n, n, 1};
  return desc;
}

size_t Index(const std::array<int64_t, 3>& strides, int64_t a, int64_t b,
             int64_t c) {
  return static_cast<size_t>(a * strides[0] + b * strides[1] + c * strides[2]);
}

class DeviceInt4GemmTest : public DeviceTest {
 protected:
  // `extreme`: zero points that no number of 4 bits is near to.
  void Check(GemmDesc desc, bool extreme = false) {
    for (const bool has_bias : {false, true})
      for (const bool has_zero : {false, true}) {
        desc.has_bias = has_bias;
        desc.has_zero = has_zero;
        SCOPED_TRACE(::testing::Message()
                     << desc.m << "x" << desc.n << "x" << desc.k << " group "
                     << desc.group << (has_bias ? " bias" : "")
                     << (has_zero ? " zero" : ""));
        CheckOnce(desc, extreme);
      }
  }

 private:
  template <typename T>
  device::Allocation Put(const std::vector<T>& values) {
    return Upload(values.data(),
                  static_cast<int64_t>(values.size() * sizeof(T)));
  }

  void CheckOnce(const GemmDesc& desc, bool extreme) {
    const size_t lhs_size =
        Index(desc.lhs_strides, desc.batch - 1, desc.m - 1, desc.k - 1) + 1;
    const size_t rhs_size =
        Index(desc.rhs_strides, desc.batch - 1, desc.k - 1, desc.n - 1) + 1;
    const size_t out_size =
        Index(desc.out_strides, desc.batch - 1, desc.m - 1, desc.n - 1) + 1;
    const size_t groups = (rhs_size - 1) / static_cast<size_t>(desc.group) + 1;
    const std::vector<float> lhs = Values(static_cast<int64_t>(lhs_size), 4),
                             scale = Values(static_cast<int64_t>(groups), 2),
                             bias = Values(desc.n, 3);
    std::vector<uint8_t> bytes;
    for (size_t i = 0; i < (rhs_size + 1) / 2; ++i)
      bytes.push_back(static_cast<uint8_t>(i * 37 + i / 7));
    std::vector<int8_t> zeros;
    for (size_t i = 0; i < groups; ++i)
      zeros.push_back(!desc.has_zero ? 8
                      : extreme      ? static_cast<int8_t>(i % 2 ? -128 : 127)
                                     : static_cast<int8_t>(i * 7 % 16));
    std::vector<float> weights;
    for (size_t place = 0; place < rhs_size; ++place) {
      const int byte = bytes[place / 2];
      const size_t group = place / static_cast<size_t>(desc.group);
      const int integer = place % 2 == 0 ? byte & 15 : byte >> 4;
      weights.push_back(scale[group] *
                        static_cast<float>(integer - zeros[group]));
    }
    std::vector<float> expected(out_size);
    for (int64_t b = 0; b < desc.batch; ++b)
      for (int64_t i = 0; i < desc.m; ++i)
        for (int64_t j = 0; j < desc.n; ++j) {
          double sum = desc.has_bias ? bias[static_cast<size_t>(j)] : 0;
          for (int64_t k = 0; k < desc.k; ++k)
            sum += static_cast<double>(lhs[Index(desc.lhs_strides, b, i, k)]) *
                   weights[Index(desc.rhs_strides, b, k, j)];
          expected[Index(desc.out_strides, b, i, j)] = static_cast<float>(sum);
        }
    const device::Allocation lhs_memory = Put(lhs), rhs_memory = Put(bytes),
                             scale_memory = Put(scale),
                             zero_memory = Put(zeros), bias_memory = Put(bias),
                             out = Put(std::vector<float>(out_size));
    std::vector<void*> buffers = {lhs_memory.data(), rhs_memory.data(),
                                  scale_memory.data()};
    if (desc.has_zero) buffers.push_back(zero_memory.data());
    if (desc.has_bias) buffers.push_back(bias_memory.data());
    buffers.push_back(out.data());
    absl::StatusOr<std::unique_ptr<device::LibraryOp>> op =
        device_->PrepareGemm(desc,
                             std::vector<const void*>(buffers.size(), nullptr));
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
    if (Executes())
      ExpectNear(expected, found, (extreme ? 1e-4 : 1e-5) * desc.k);
  }
};

TEST_P(DeviceInt4GemmTest, Sizes) {
  for (const int64_t m : {1, 5, 17, 40})
    for (const int64_t n : {1, 15, 100})
      for (const int64_t k : {64, 192}) Check(Describe(1, m, n, k, 64));
}

TEST_P(DeviceInt4GemmTest, Groups) {
  for (const int64_t group : {2, 16, 32, 128})
    for (const int64_t m : {3, 20})
      for (const int64_t batch : {1, 3})
        for (const bool across : {false, true})
          Check(Describe(batch, m, 128, 256, group, across));
}

TEST_P(DeviceInt4GemmTest, ZeroPointsOf8Bits) {
  for (const int64_t m : {1, 20})
    Check(Describe(1, m, 40, 128, 64), /*extreme=*/true);
}

// Groups end inside of rows.
TEST_P(DeviceInt4GemmTest, GroupsThatDoNotEndWithRows) {
  for (const bool across : {false, true})
    for (const int64_t m : {1, 20}) Check(Describe(1, m, 66, 70, 4, across));
}

// Several blocks of rows, panels of columns, and rests of both.
TEST_P(DeviceInt4GemmTest, Large) {
  Check(Describe(1, 300, 300, 768, 64));
  Check(Describe(1, 300, 200, 300, 50, /*across=*/true));
  Check(Describe(1, 4, 500, 1024, 128));
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceInt4GemmTest,
                         ::testing::ValuesIn(AllDevices()), DeviceName);

}  // namespace
}  // namespace partita::conformance
