// Products with constant weights that are pruned 2:4 or by blocks, on every
// device, beside plain loops. CPUs pack them without zeros.
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/device_fixture.h"

namespace partita::conformance {
namespace {

using device::Activation;
using device::GemmDesc;

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
      if (IsCpu()) EXPECT_EQ(found == "rows pruned 2:4", m <= 16) << found;
    }
}

TEST_P(DevicePrunedGemmTest, WideAndDeep) {
  for (const int64_t m : {2, 15}) {
    GemmDesc desc = Product(m, 2100, 33, true);
    Check(desc, Weight(desc));
    desc = Product(m, 40, 4000, false);
    Check(desc, Weight(desc));
  }
}

TEST_P(DevicePrunedGemmTest, Epilogues) {
  for (const Activation activation :
       {Activation::kNone, Activation::kGeluTanh, Activation::kSilu})
    for (const int64_t m : {1, 12}) {
      GemmDesc desc = Product(m, 96, 128, true);
      desc.has_bias = desc.has_residual = true;
      desc.activation = activation;
      Check(desc, Weight(desc));
    }
}

TEST_P(DevicePrunedGemmTest, BatchOfRows) {
  GemmDesc desc = Product(4, 96, 128, false);
  desc.batch = 3;
  desc.has_residual = true;
  const std::string found = Check(desc, Weight(desc));
  if (IsCpu()) EXPECT_EQ(found, "rows pruned 2:4");
}

TEST_P(DevicePrunedGemmTest, BlocksOfZeros) {
  for (const bool transposed : {false, true})
    for (const int64_t m : {1, 9, 70}) {
      SCOPED_TRACE(::testing::Message() << m << " rows " << transposed);
      GemmDesc desc = Product(m, 1300, 200, transposed);
      desc.has_bias = desc.has_residual = true;
      desc.activation = Activation::kRelu;
      const std::string found = Check(desc, Blocks(desc));
      if (IsCpu()) EXPECT_EQ(found, "rows without zero blocks");
    }
}

// Other weights are multiplied whole.
TEST_P(DevicePrunedGemmTest, OtherWeights) {
  const GemmDesc desc = Product(2, 96, 128, false);
  std::vector<float> weight = Weight(desc);
  weight.back() = weight[weight.size() - 2] = weight[weight.size() - 3] = 0.5F;
  EXPECT_NE(Check(desc, weight), "rows pruned 2:4");
  EXPECT_NE(Check(desc, Weight(desc), /*constant=*/false), "rows pruned 2:4");
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
