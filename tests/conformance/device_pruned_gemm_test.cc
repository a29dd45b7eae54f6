// Products with constant weights that are pruned 2:4 or by blocks, on every
// device, beside plain loops. CPUs pack them without zeros.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/device_fixture.h"

namespace partita::conformance {
namespace {

using device::Activation;
using device::GemmDesc;

// Descriptions of operations that skip zeros.
constexpr const char* kPruned = "rows pruned 2:4";
constexpr const char* kBlocks = "rows without zero blocks";

// lhs [m, k]; the weight is [n, k] or, `transposed`, [k, n].
GemmDesc Product(int64_t m, int64_t n, int64_t k, bool transposed) {
  GemmDesc desc;
  desc.m = m, desc.n = n, desc.k = k;
  desc.lhs_strides = {m * k, k, 1};
  desc.rhs_strides = {0, transposed ? n : 1, transposed ? 1 : k};
  desc.out_strides = {m * n, n, 1};
  return desc;
}

class DevicePrunedGemmTest : public DeviceTest {
 protected:
  // Values whose third and fourth of each four terms of a sum are zero, or
  // first and third.
  static std::vector<float> Weight(const GemmDesc& desc) {
    std::vector<float> weight = Values(desc.n * desc.k, 2);
    for (int64_t n = 0; n < desc.n; ++n)
      for (int64_t k = 0; k < desc.k; ++k)
        if (k % 4 == 2 || k % 4 == (n % 2 == 0 ? 3 : 0))
          weight[static_cast<size_t>(k * desc.rhs_strides[1] +
                                     n * desc.rhs_strides[2])] = 0;
    return weight;
  }

  // A fourth of the blocks of 32 x 32 is not zero.
  static std::vector<float> Blocks(const GemmDesc& desc) {
    std::vector<float> weight = Values(desc.n * desc.k, 2);
    for (int64_t n = 0; n < desc.n; ++n)
      for (int64_t k = 0; k < desc.k; ++k)
        if ((k / 32 + n / 32) % 4 != 0)
          weight[static_cast<size_t>(k * desc.rhs_strides[1] +
                                     n * desc.rhs_strides[2])] = 0;
    return weight;
  }

  // Runs the product, compares it, and returns the operation's description.
  std::string Check(const GemmDesc& desc, const std::vector<float>& weight,
                    bool constant = true) {
    const int64_t rows = desc.batch * desc.m;
    const std::vector<float> lhs = Values(rows * desc.k, 1);
    const std::vector<float> bias =
        desc.has_bias ? Values(desc.n, 3) : std::vector<float>();
    const std::vector<float> residual =
        desc.has_residual ? Values(rows * desc.n, 4) : std::vector<float>();
    std::vector<float> expected(static_cast<size_t>(rows * desc.n), 0.0F);
    const device::Allocation out = Upload(expected.data(), 4 * rows * desc.n);
    ReferenceGemm(desc, lhs, weight, bias, residual, expected);
    std::vector<device::Allocation> memory;
    for (const auto* values : {&lhs, &weight, &bias, &residual})
      if (!values->empty())
        memory.push_back(
            Upload(values->data(), static_cast<int64_t>(values->size()) * 4));
    std::vector<void*> buffers;
    for (const device::Allocation& allocation : memory)
      buffers.push_back(allocation.data());
    buffers.push_back(out.data());
    std::vector<const void*> constants(buffers.size(), nullptr);
    if (constant) constants[1] = buffers[1];
    absl::StatusOr<std::unique_ptr<device::LibraryOp>> op =
        device_->PrepareGemm(desc, constants);
    EXPECT_TRUE(op.ok()) << op.status();
    if (!op.ok()) return "";
    for (int repeat = 0; repeat < 2; ++repeat)
      EXPECT_TRUE(device_
                      ->Execute(*stream_, **op, buffers.data(),
                                static_cast<int>(buffers.size()))
                      .ok());
    std::vector<float> found(expected.size());
    Download(out, found.data());
    if (Executes()) ExpectNear(expected, found, 2e-5);
    return (*op)->Description();
  }

  bool IsCpu() const { return Executes() && !GetParam().IsGpu(); }
};

TEST_P(DevicePrunedGemmTest, Rows) {
  for (const bool transposed : {false, true})
    for (const int64_t m : {1, 3, 8, 9, 13, 16, 17}) {
      SCOPED_TRACE(::testing::Message() << m << " rows " << transposed);
      const GemmDesc desc = Product(m, 100, 130, transposed);
      const std::string found = Check(desc, Weight(desc));
      if (IsCpu()) EXPECT_EQ(found == kPruned, m <= 16) << found;
    }
}

TEST_P(DevicePrunedGemmTest, WideAndDeep) {
  for (const int64_t m : {2, 15}) {
    for (const GemmDesc& desc :
         {Product(m, 2100, 33, true), Product(m, 40, 4000, false)}) {
      const std::string found = Check(desc, Weight(desc));
      if (IsCpu()) EXPECT_EQ(found, kPruned);
    }
  }
}

// True if a CPU's own products compute activations with vectors.
bool HasVectors() {
  return __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512dq");
}

TEST_P(DevicePrunedGemmTest, Epilogues) {
  for (const Activation activation :
       {Activation::kNone, Activation::kRelu, Activation::kGeluErf,
        Activation::kGeluTanh, Activation::kSilu, Activation::kTanh,
        Activation::kSigmoid, Activation::kRelu6, Activation::kHardSwish})
    for (const int64_t m : {1, 7, 12}) {
      GemmDesc desc = Product(m, 100, 1024, true);
      desc.has_bias = desc.has_residual = true;
      desc.activation = activation;
      const std::string found = Check(desc, Weight(desc));
      const bool is_slow = m > 8 && !HasVectors() &&
                           (activation == Activation::kGeluErf ||
                            activation == Activation::kTanh);
      if (IsCpu()) EXPECT_EQ(found == kPruned, !is_slow) << found;
    }
}

// Without AVX-512, oneDNN computes these activations of many rows faster.
TEST_P(DevicePrunedGemmTest, SlowActivationsOfManyRows) {
  if (!IsCpu()) GTEST_SKIP() << "only CPUs choose by the activation";
  const auto is_whole = [&](int64_t rows, int64_t depth, Activation which) {
    GemmDesc desc = Product(rows, 96, depth, true);
    desc.activation = which;
    return Check(desc, Weight(desc)) != kPruned;
  };
  EXPECT_FALSE(is_whole(8, 1024, Activation::kGeluErf));
  EXPECT_EQ(is_whole(9, 1024, Activation::kGeluErf), !HasVectors());
  EXPECT_EQ(is_whole(9, 1024, Activation::kTanh), !HasVectors());
  EXPECT_FALSE(is_whole(9, 1024, Activation::kSilu));
  EXPECT_EQ(is_whole(9, 1020, Activation::kSilu), !HasVectors());
}

TEST_P(DevicePrunedGemmTest, BatchOfRows) {
  GemmDesc desc = Product(4, 96, 128, false);
  desc.batch = 3;
  desc.has_residual = true;
  const std::string found = Check(desc, Weight(desc));
  if (IsCpu()) EXPECT_EQ(found, kPruned);
}

TEST_P(DevicePrunedGemmTest, BlocksOfZeros) {
  for (const bool transposed : {false, true})
    for (const int64_t m : {1, 9, 70}) {
      SCOPED_TRACE(::testing::Message() << m << " rows " << transposed);
      GemmDesc desc = Product(m, 1300, 200, transposed);
      desc.has_bias = desc.has_residual = true;
      desc.activation = Activation::kRelu;
      const std::string found = Check(desc, Blocks(desc));
      if (IsCpu()) EXPECT_EQ(found, kBlocks);
    }
}

// Threads take rows as well as columns.
TEST_P(DevicePrunedGemmTest, FewColumnsOfManyRows) {
  for (const int64_t m : {17, 66, 200}) {
    const GemmDesc desc = Product(m, 32, 1000, false);
    const std::string found = Check(desc, Blocks(desc));
    if (IsCpu()) EXPECT_EQ(found, kBlocks);
  }
}

// Infinity and NaN in the second group of rows reach columns whose weights are
// zero; rows full of NaN take no longer than others.
TEST_P(DevicePrunedGemmTest, InfinityAndNan) {
  if (!IsCpu()) return;
  const int64_t m = 12, n = 2048, k = 4096;
  const GemmDesc desc = Product(m, n, k, false);
  for (const bool blocks : {false, true}) {
    const std::vector<float> weight = blocks ? Blocks(desc) : Weight(desc);
    std::vector<float> lhs = Values(m * k, 1);
    lhs[9 * k + 3] = std::numeric_limits<float>::infinity();
    std::fill(lhs.begin() + 10 * k, lhs.begin() + 11 * k,
              std::numeric_limits<float>::quiet_NaN());
    const device::Allocation a = Upload(lhs.data(), 4 * m * k),
                             b = Upload(weight.data(), 4 * n * k),
                             out = Upload(lhs.data(), 4 * m * n);
    auto op = device_->PrepareGemm(desc, {nullptr, b.data(), nullptr});
    ASSERT_TRUE(op.ok()) << op.status();
    ASSERT_EQ((*op)->Description(), blocks ? kBlocks : kPruned);
    void* buffers[] = {a.data(), b.data(), out.data()};
    ASSERT_TRUE(device_->Execute(*stream_, **op, buffers, 3).ok());
    std::vector<float> found(static_cast<size_t>(m * n));
    Download(out, found.data());
    for (int64_t row = 0; row < m; ++row)
      for (int64_t column = 0; column < n; ++column) {
        const float value = found[static_cast<size_t>(row * n + column)];
        const float factor = weight[static_cast<size_t>(column * k + 3)];
        if (row == 10 || (row == 9 && factor == 0))
          ASSERT_TRUE(std::isnan(value)) << row << ", " << column;
        else
          ASSERT_EQ(std::isinf(value), row == 9) << row << ", " << column;
      }
  }
}

// Matrices that gain nothing, by their sizes or their share of zeros.
TEST_P(DevicePrunedGemmTest, WholeMatrices) {
  if (!IsCpu()) return;
  const auto is_whole = [&](const GemmDesc& desc,
                            const std::vector<float>& weight) {
    const std::string found = Check(desc, weight);
    return found != kPruned && found != kBlocks;
  };
  const GemmDesc small = Product(1, 64, 64, false),
                 narrow = Product(1, 2, 8192, false),
                 shallow = Product(1, 8192, 2, true);
  EXPECT_TRUE(is_whole(small, Weight(small)));
  EXPECT_TRUE(is_whole(narrow, Weight(narrow)));
  EXPECT_TRUE(is_whole(shallow, Values(2 * 8192, 2)));
  // Half of the blocks are zero: enough for few rows.
  for (const int64_t m : {16, 17}) {
    const GemmDesc desc = Product(m, 256, 256, false);
    std::vector<float> weight = Values(256 * 256, 2);
    for (int64_t i = 0; i < 256 * 256; ++i)
      if ((i / 256 / 32 + i % 256 / 32) % 2 == 0)
        weight[static_cast<size_t>(i)] = 0;
    EXPECT_EQ(is_whole(desc, weight), m == 17);
  }
}

// Other weights are multiplied whole.
TEST_P(DevicePrunedGemmTest, OtherWeights) {
  const GemmDesc desc = Product(2, 96, 128, false);
  std::vector<float> weight = Weight(desc);
  weight.back() = weight[weight.size() - 2] = weight[weight.size() - 3] = 0.5F;
  EXPECT_NE(Check(desc, weight), kPruned);
  EXPECT_NE(Check(desc, Weight(desc), /*constant=*/false), kPruned);
}

// 17/32 of the weight's bytes, once for all numbers of rows.
TEST_P(DevicePrunedGemmTest, PackedOnce) {
  if (!IsCpu()) return;
  const GemmDesc one = Product(1, 256, 128, false),
                 many = Product(16, 256, 128, false);
  const std::vector<float> weight = Weight(one);
  const int64_t bytes = 4 * 256 * 128;
  const device::Allocation b = Upload(weight.data(), bytes);
  const int64_t before = device_->Memory().packed;
  {
    auto first = device_->PrepareGemm(one, {nullptr, b.data(), nullptr});
    auto second = device_->PrepareGemm(many, {nullptr, b.data(), nullptr});
    ASSERT_TRUE(first.ok() && second.ok());
    EXPECT_TRUE((*first)->Packed(1) && (*second)->Packed(1));
    EXPECT_EQ(device_->Memory().packed - before, bytes / 32 * 17);
  }
  EXPECT_EQ(device_->Memory().packed, before);
}

INSTANTIATE_TEST_SUITE_P(Devices, DevicePrunedGemmTest,
                         ::testing::ValuesIn(AllDevices()), DeviceName);

}  // namespace
}  // namespace partita::conformance
