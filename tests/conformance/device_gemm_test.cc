// Compares matrix products on every device with plain loops.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/device_fixture.h"

namespace partita::conformance {
namespace {

using device::Activation;
using device::GemmDesc;

// Row-major, one matrix after the other.
GemmDesc Dense(int64_t batch, int64_t m, int64_t n, int64_t k) {
  GemmDesc desc;
  desc.batch = batch;
  desc.m = m;
  desc.n = n;
  desc.k = k;
  desc.lhs_strides = {m * k, k, 1};
  desc.rhs_strides = {k * n, n, 1};
  desc.out_strides = {m * n, n, 1};
  return desc;
}

size_t Span(const std::array<int64_t, 3>& strides, int64_t a, int64_t b,
            int64_t c) {
  return static_cast<size_t>((a - 1) * strides[0] + (b - 1) * strides[1] +
                             (c - 1) * strides[2] + 1);
}

class DeviceGemmTest : public DeviceTest {
 protected:
  // Runs on the device and compares, with a constant right-hand side and
  // without.
  void Check(const GemmDesc& desc, double tolerance = 2e-5,
             bool expect_amx = false) {
    for (const bool constant : {false, true}) {
      SCOPED_TRACE(constant ? "constant rhs" : "variable rhs");
      CheckOnce(desc, constant, tolerance, expect_amx);
    }
  }

  // AMX must compute a CPU's products of f32 that reach this many rows.
  void ExpectAmx(const device::LibraryOp& op) const {
#ifdef __x86_64__
    if (Executes() && !GetParam().IsGpu() && __builtin_cpu_supports("amx-bf16"))
      EXPECT_EQ(op.Description(), "split:amx_bf16");
#endif
  }

  // Computes a dense result without bias or residual, on AMX if there is AMX.
  std::vector<float> Run(const GemmDesc& desc, const std::vector<float>& lhs,
                         const std::vector<float>& rhs, bool constant = false) {
    std::vector<float> found(static_cast<size_t>(desc.batch * desc.m * desc.n));
    const auto bytes = [](const std::vector<float>& values) {
      return static_cast<int64_t>(4 * values.size());
    };
    const device::Allocation a = Upload(lhs.data(), bytes(lhs)),
                             b = Upload(rhs.data(), bytes(rhs)),
                             out = Upload(found.data(), bytes(found));
    absl::StatusOr<std::unique_ptr<device::LibraryOp>> op =
        device_->PrepareGemm(desc,
                             {nullptr, constant ? b.data() : nullptr, nullptr});
    EXPECT_TRUE(op.ok()) << op.status();
    if (!op.ok()) return found;
    ExpectAmx(**op);
    // Nobody reads a weight again that is packed.
    void* buffers[] = {a.data(), (*op)->Packed(1) ? nullptr : b.data(),
                       out.data()};
    EXPECT_TRUE(device_->Execute(*stream_, **op, buffers, 3).ok());
    Download(out, found.data());
    return found;
  }

 private:
  // Random values, rounded to the device's 16-bit type.
  std::vector<float> Rounded(const GemmDesc& desc, size_t count,
                             uint64_t seed) {
    return Decode(
        desc.dtype,
        Encode(desc.dtype, Values(static_cast<int64_t>(count), seed)));
  }
  device::Allocation Put(const GemmDesc& desc,
                         const std::vector<float>& values) {
    const std::string bytes = Encode(desc.dtype, values);
    return Upload(bytes.data(), static_cast<int64_t>(bytes.size()));
  }

  void CheckOnce(const GemmDesc& desc, bool constant, double tolerance,
                 bool expect_amx) {
    const std::vector<float> lhs =
        Rounded(desc, Span(desc.lhs_strides, desc.batch, desc.m, desc.k), 1);
    const std::vector<float> rhs =
        Rounded(desc, Span(desc.rhs_strides, desc.batch, desc.k, desc.n), 2);
    const std::vector<float> bias =
        desc.has_bias ? Rounded(desc, static_cast<size_t>(desc.n), 3)
                      : std::vector<float>();
    const size_t out_size = Span(desc.out_strides, desc.batch, desc.m, desc.n);
    const std::vector<float> residual =
        desc.has_residual ? Rounded(desc, out_size, 4) : std::vector<float>();
    // Memory between the elements of out must not change.
    std::vector<float> expected = Rounded(desc, out_size, 5);
    const device::Allocation out = Put(desc, expected);
    ReferenceGemm(desc, lhs, rhs, bias, residual, expected);

    std::vector<device::Allocation> memory;
    memory.push_back(Put(desc, lhs));
    memory.push_back(Put(desc, rhs));
    if (desc.has_bias) memory.push_back(Put(desc, bias));
    if (desc.has_residual) memory.push_back(Put(desc, residual));
    std::vector<void*> buffers;
    for (const device::Allocation& allocation : memory)
      buffers.push_back(allocation.data());
    buffers.push_back(out.data());
    std::vector<const void*> constants(buffers.size(), nullptr);
    if (constant) constants[1] = buffers[1];
    absl::StatusOr<std::unique_ptr<device::LibraryOp>> op =
        device_->PrepareGemm(desc, constants);
    ASSERT_TRUE(op.ok()) << op.status();
    if (expect_amx) ExpectAmx(**op);
    for (int repeat = 0; repeat < 2; ++repeat) {
      ASSERT_TRUE(device_
                      ->Execute(*stream_, **op, buffers.data(),
                                static_cast<int>(buffers.size()))
                      .ok());
    }
    std::string found(static_cast<size_t>(out.bytes()), '\0');
    Download(out, found.data());
    if (Executes()) ExpectNear(expected, Decode(desc.dtype, found), tolerance);
  }
};

TEST_P(DeviceGemmTest, Sizes) {
  for (const int64_t m : {1, 2, 3, 5, 17, 64}) {
    for (const int64_t n : {1, 2, 15, 16, 100}) {
      for (const int64_t k : {1, 3, 64, 130}) {
        SCOPED_TRACE(::testing::Message() << m << "x" << n << "x" << k);
        Check(Dense(1, m, n, k));
      }
    }
  }
}

TEST_P(DeviceGemmTest, Transposes) {
  for (const bool transpose_lhs : {false, true}) {
    for (const bool transpose_rhs : {false, true}) {
      for (const bool transpose_out : {false, true}) {
        for (const int64_t batch : {1, 3}) {
          SCOPED_TRACE(::testing::Message()
                       << transpose_lhs << transpose_rhs << transpose_out
                       << " batch " << batch);
          GemmDesc desc = Dense(batch, 12, 20, 33);
          if (transpose_lhs) desc.lhs_strides = {12 * 33, 1, 12};
          if (transpose_rhs) desc.rhs_strides = {20 * 33, 1, 33};
          if (transpose_out) desc.out_strides = {12 * 20, 1, 12};
          desc.has_bias = true;
          desc.activation = Activation::kRelu;
          Check(desc);
        }
      }
    }
  }
}

TEST_P(DeviceGemmTest, StridesWithGaps) {
  GemmDesc desc = Dense(2, 9, 24, 16);
  desc.lhs_strides = {9 * 50, 50, 1};
  desc.rhs_strides = {16 * 30, 30, 1};
  desc.out_strides = {9 * 40, 40, 1};
  Check(desc);
  // Attention's layout, with heads side by side: [rows, heads, width].
  desc.lhs_strides = {16, 2 * 16, 1};
  desc.rhs_strides = {16, 1, 2 * 16};
  desc.out_strides = {24, 2 * 24, 1};
  Check(desc);
  // Neither rows nor columns are contiguous.
  desc.lhs_strides = {9 * 64, 64, 3};
  desc.out_strides = {1, 2 * 30, 2};
  Check(desc);
}

TEST_P(DeviceGemmTest, OneMatrixForTheWholeBatch) {
  GemmDesc desc = Dense(4, 6, 10, 8);
  desc.rhs_strides[0] = 0;
  desc.has_bias = true;
  desc.has_residual = true;
  Check(desc);
  // A batch that cannot be merged with the rows.
  desc.lhs_strides = {8, 4 * 8, 1};
  Check(desc);
  desc = Dense(4, 6, 10, 8);
  desc.lhs_strides[0] = 0;
  Check(desc);
}

TEST_P(DeviceGemmTest, BiasActivationResidual) {
  for (const Activation activation :
       {Activation::kNone, Activation::kRelu, Activation::kGeluErf,
        Activation::kGeluTanh, Activation::kSilu, Activation::kTanh,
        Activation::kSigmoid, Activation::kRelu6, Activation::kHardSwish}) {
    for (const bool bias : {false, true}) {
      for (const bool residual : {false, true}) {
        for (const int64_t batch : {1, 2}) {
          for (const int64_t m : {1, 7}) {
            SCOPED_TRACE(::testing::Message()
                         << "activation " << static_cast<int>(activation)
                         << bias << residual << " batch " << batch);
            GemmDesc desc = Dense(batch, m, 40, 19);
            desc.activation = activation;
            desc.has_bias = bias;
            desc.has_residual = residual;
            Check(desc);
          }
        }
      }
    }
  }
}

TEST_P(DeviceGemmTest, HalfPrecision) {
  for (const base::DType dtype : {base::DType::kBF16, base::DType::kF16}) {
    for (const int64_t batch : {1, 2}) {
      SCOPED_TRACE(base::NameOf(dtype));
      GemmDesc desc = Dense(batch, 5, 48, 64);
      desc.dtype = dtype;
      desc.has_bias = true;
      desc.has_residual = true;
      desc.activation = Activation::kGeluErf;
      // The sum is in f32; the stored value has 8 or 11 bits.
      Check(desc, dtype == base::DType::kBF16 ? 8e-3 : 1e-3);
      desc.out_strides = {5 * 60, 60, 1};
      Check(desc, dtype == base::DType::kBF16 ? 8e-3 : 1e-3);
    }
  }
}

TEST_P(DeviceGemmTest, ResidualMayBeTheOutput) {
  // Libraries may write partial results of a long sum before they add the rest.
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{8, 32, 16},
                                std::array<int64_t, 3>{64, 96, 4096}}) {
    SCOPED_TRACE(k);
    GemmDesc desc = Dense(1, m, n, k);
    desc.has_residual = true;
    const std::vector<float> lhs = Values(m * k, 1), rhs = Values(k * n, 2),
                             residual = Values(m * n, 3);
    std::vector<float> expected(m * n);
    ReferenceGemm(desc, lhs, rhs, {}, residual, expected);
    const device::Allocation a = Upload(lhs.data(), 4 * m * k),
                             b = Upload(rhs.data(), 4 * k * n);
    for (const bool constant : {false, true}) {
      const device::Allocation out = Upload(residual.data(), 4 * m * n);
      absl::StatusOr<std::unique_ptr<device::LibraryOp>> op =
          device_->PrepareGemm(
              desc, {nullptr, constant ? b.data() : nullptr, nullptr, nullptr});
      ASSERT_TRUE(op.ok()) << op.status();
      void* buffers[] = {a.data(), b.data(), out.data(), out.data()};
      ASSERT_TRUE(device_->Execute(*stream_, **op, buffers, 4).ok());
      std::vector<float> found(m * n);
      Download(out, found.data());
      if (Executes()) ExpectNear(expected, found, k > 1000 ? 2e-4 : 2e-5);
    }
  }
}

// The CPU copies such a matrix into panels of 32 columns if it is constant.
TEST_P(DeviceGemmTest, FewRowsByALargeMatrix) {
  for (int64_t m = 1; m <= 9; ++m) {
    for (const auto& [n, k] : {std::pair<int64_t, int64_t>{32, 257},
                               {64, 300},
                               {96, 100},
                               {1120, 40},
                               {1121, 40}}) {
      SCOPED_TRACE(::testing::Message() << m << "x" << n << "x" << k);
      GemmDesc desc = Dense(1, m, n, k);
      desc.rhs_strides = {k * (n + 8), n + 8, 1};
      desc.has_bias = true;
      Check(desc);
    }
  }
}

// CPUs copy such matrices before they multiply.
TEST_P(DeviceGemmTest, ManyRowsByRowsOf4KiB) {
  Check(Dense(1, 130, 1024, 40));
  GemmDesc desc = Dense(1, 300, 70, 33);
  desc.rhs_strides = {0, 2048, 1};
  desc.has_bias = desc.has_residual = true;
  desc.activation = Activation::kRelu;
  Check(desc);
}

// CPUs with AMX compute these by products of bf16, in blocks.
TEST_P(DeviceGemmTest, LargeMatrices) {
  if (!Executes() || !GetParam().driver.empty())
    GTEST_SKIP() << "null computes nothing; a recorded GPU takes minutes";
  for (const bool transpose_lhs : {false, true}) {
    for (const bool transpose_rhs : {false, true}) {
      for (const int64_t batch : {1, 2}) {
        SCOPED_TRACE(::testing::Message()
                     << transpose_lhs << transpose_rhs << " batch " << batch);
        const int64_t m = 401, n = 171, k = 450;
        GemmDesc desc = Dense(batch, m, n, k);
        if (transpose_lhs) desc.lhs_strides = {m * k, 1, m};
        if (transpose_rhs) desc.rhs_strides = {k * n, 1, k};
        desc.has_bias = desc.has_residual = true;
        Check(desc, 2e-5, /*expect_amx=*/true);
        desc.has_residual = false;
        desc.activation = Activation::kRelu;
        desc.out_strides = {m * 200, 200, 1};
        Check(desc, 2e-5, /*expect_amx=*/true);
      }
    }
  }
}

TEST_P(DeviceGemmTest, ActivationsOfLargeMatrices) {
  for (const Activation activation :
       {Activation::kGeluErf, Activation::kGeluTanh, Activation::kSilu,
        Activation::kTanh, Activation::kSigmoid, Activation::kRelu6,
        Activation::kHardSwish}) {
    SCOPED_TRACE(static_cast<int>(activation));
    // Sums are between about -15 and 15. AMX takes 128 rows of a constant.
    GemmDesc desc = Dense(1, GetParam().IsGpu() ? 65 : 129, 90, 400);
    desc.has_bias = true;
    desc.activation = activation;
    Check(desc, 5e-6, /*expect_amx=*/true);
  }
}

// Numbers that have no parts in bf16, or few.
TEST_P(DeviceGemmTest, LargeMatricesOfLargeAndSmallNumbers) {
  if (!Executes()) GTEST_SKIP() << "null computes nothing";
  const int64_t m = 130, n = 96, k = 450;
  const auto float_of = [](uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  };
  const float infinity = std::numeric_limits<float>::infinity();
  const float most = std::numeric_limits<float>::max();
  for (const bool transpose_lhs : {false, true}) {
    for (const bool transpose_rhs : {false, true}) {
      GemmDesc desc = Dense(1, m, n, k);
      if (transpose_lhs) desc.lhs_strides = {m * k, 1, m};
      if (transpose_rhs) desc.rhs_strides = {k * n, 1, k};
      std::vector<float> lhs = Values(m * k, 1), rhs = Values(k * n, 2);
      const auto at = [&](int64_t row, int64_t depth) -> float& {
        return lhs[static_cast<size_t>(row * desc.lhs_strides[1] +
                                       depth * desc.lhs_strides[2])];
      };
      const auto rhs_at = [&](int64_t depth, int64_t column) -> float& {
        return rhs[static_cast<size_t>(depth * desc.rhs_strides[1] +
                                       column * desc.rhs_strides[2])];
      };
      at(3, 0) = infinity;
      at(40, 407) = float_of(0x7fffffff);  // NaN
      at(41, 8) = float_of(0xffffffff);
      at(50, 9) = most;
      at(60, 11) = 1e30f;
      rhs_at(11, 5) = -1e30f;
      rhs_at(12, 50) = infinity;
      rhs_at(413, 51) = float_of(0x7fffffff);
      rhs_at(14, 52) = -most;
      for (int64_t i = 0; i < k; ++i) at(70, i) *= 1e-30f;
      std::vector<float> expected(m * n);
      ReferenceGemm(desc, lhs, rhs, {}, {}, expected);
      for (const bool constant : {false, true}) {
        const std::vector<float> found = Run(desc, lhs, rhs, constant);
        for (int64_t i = 0; i < m * n; ++i) {
          SCOPED_TRACE(::testing::Message()
                       << transpose_lhs << transpose_rhs << constant
                       << " element " << i / n << ", " << i % n);
          const float right = expected[static_cast<size_t>(i)],
                      value = found[static_cast<size_t>(i)];
          if (std::isnan(right)) {
            EXPECT_TRUE(std::isnan(value)) << value;
          } else if (std::isinf(right)) {
            EXPECT_EQ(value, right);
          } else {
            const float least = i / n == 70 ? 1e-30f : 1;
            EXPECT_NEAR(value, right, 2e-5 * std::max(least, std::abs(right)));
          }
        }
      }
    }
  }
}

// Their parts must not disturb their neighbours'. One scale at a time, because
// garbage that is infinite would be noticed, and its row computed again.
TEST_P(DeviceGemmTest, LargeMatricesOfTinyNumbers) {
  if (!Executes()) GTEST_SKIP() << "null computes nothing";
  const int64_t m = 96, n = 96, k = 70;
  for (const bool transpose : {false, true}) {
    GemmDesc desc = Dense(1, m, n, k);
    if (transpose) {
      desc.lhs_strides = {m * k, 1, m};
      desc.rhs_strides = {k * n, 1, k};
    }
    for (float scale = 1e-32f; scale > 1e-43f; scale /= 10) {
      SCOPED_TRACE(::testing::Message() << transpose << ", scale " << scale);
      std::vector<float> lhs = Values(m * k, 1), rhs = Values(k * n, 2);
      for (const int64_t depth : {12, 33}) {
        for (int64_t i = 0; i < m; ++i)
          lhs[static_cast<size_t>(i * desc.lhs_strides[1] +
                                  depth * desc.lhs_strides[2])] *= scale;
        for (int64_t i = 0; i < n; ++i)
          rhs[static_cast<size_t>((depth + 10) * desc.rhs_strides[1] +
                                  i * desc.rhs_strides[2])] *= scale;
      }
      std::vector<float> expected(m * n);
      ReferenceGemm(desc, lhs, rhs, {}, {}, expected);
      ExpectNear(expected, Run(desc, lhs, rhs), 2e-5);
    }
  }
}

TEST_P(DeviceGemmTest, ThreadsDoNotChangeResults) {
  if (!Executes() || GetParam().IsGpu()) GTEST_SKIP() << "not a CPU";
  const int64_t m = 401, n = 500, k = 450;
  const GemmDesc desc = Dense(1, m, n, k);
  const std::vector<float> lhs = Values(m * k, 1), rhs = Values(k * n, 2);
  std::vector<float> results[2];
  for (const int threads : {1, 3}) {
    DeviceUnderTest device = GetParam();
    device.threads = threads;
    device_ = MakeDevice(device);
    results[threads == 1 ? 0 : 1] = Run(desc, lhs, rhs);
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST_P(DeviceGemmTest, PanelsDoNotChangeResults) {
  if (!Executes()) return;
  for (const int64_t m : {1, 3, 8}) {
    const int64_t n = 1056, k = 70;
    const GemmDesc desc = Dense(1, m, n, k);
    const std::vector<float> lhs = Values(m * k, 1), rhs = Values(k * n, 2);
    const device::Allocation a = Upload(lhs.data(), 4 * m * k),
                             b = Upload(rhs.data(), 4 * k * n);
    std::vector<float> results[2];
    for (const bool constant : {false, true}) {
      const std::vector<float> none(static_cast<size_t>(m * n), 0);
      const device::Allocation out = Upload(none.data(), 4 * m * n);
      absl::StatusOr<std::unique_ptr<device::LibraryOp>> op =
          device_->PrepareGemm(
              desc, {nullptr, constant ? b.data() : nullptr, nullptr});
      ASSERT_TRUE(op.ok()) << op.status();
      void* buffers[] = {a.data(), b.data(), out.data()};
      ASSERT_TRUE(device_->Execute(*stream_, **op, buffers, 3).ok());
      results[constant ? 1 : 0] = none;
      Download(out, results[constant ? 1 : 0].data());
    }
    EXPECT_EQ(results[0], results[1]) << m << " rows";
  }
}

TEST_P(DeviceGemmTest, ConstantsArePackedOnce) {
  if (!Executes()) return;  // The null device packs nothing.
  const GemmDesc desc = Dense(1, 64, 256, 128);
  const std::vector<float> rhs = Values(128 * 256, 1);
  const device::Allocation b = Upload(rhs.data(), 4 * 128 * 256);
  const int64_t before = device_->Memory().packed;
  {
    absl::StatusOr<std::unique_ptr<device::LibraryOp>> first =
        device_->PrepareGemm(desc, {nullptr, b.data(), nullptr});
    ASSERT_TRUE(first.ok());
    const int64_t one = device_->Memory().packed - before;
    absl::StatusOr<std::unique_ptr<device::LibraryOp>> second =
        device_->PrepareGemm(desc, {nullptr, b.data(), nullptr});
    ASSERT_TRUE(second.ok());
    EXPECT_EQ(device_->Memory().packed - before, one);
    EXPECT_EQ((*first)->Packed(1), one > 0);
    EXPECT_FALSE((*first)->Packed(0));
  }
  EXPECT_EQ(device_->Memory().packed, before);
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceGemmTest,
                         ::testing::ValuesIn(AllDevices()), DeviceName);

}  // namespace
}  // namespace partita::conformance
