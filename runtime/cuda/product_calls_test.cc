// Tests which calls of the recorded libraries matrix products become.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/cuda/cuda_device_testing.h"
#include "runtime/cuda/recording/recording.h"

namespace partita::cuda {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using ProductCallsTest = RecordedDeviceTest;

// Two streams use the device's only scratch in turn.
TEST_F(ProductCallsTest, ProductsOfTwoStreamsDoNotMeetInTheScratch) {
  device::GemmDesc desc;
  desc.m = desc.n = desc.k = 16;
  desc.lhs_strides = desc.rhs_strides = desc.out_strides = {0, 16, 1};
  desc.activation = device::Activation::kSilu;
  const auto op =
      std::move(device_->PrepareGemm(desc, {nullptr, nullptr, nullptr}))
          .value();
  EXPECT_EQ(op->Description(), "cuBLASLt and own kernel");
  const auto other = std::move(device_->CreateStream()).value();
  const auto memory =
      std::move(device::Allocation::Make(*device_, 3072)).value();
  void* buffers[] = {memory.data(), memory.data() + 1024, memory.data() + 2048};
  ASSERT_TRUE(device_->Execute(*stream_, *op, buffers, 3).ok());
  EXPECT_THAT(recording_.TakeLog(), Not(HasSubstr("cuStreamWaitEvent")));
  ASSERT_TRUE(device_->Execute(*other, *op, buffers, 3).ok());
  EXPECT_THAT(
      recording_.TakeLog(),
      HasSubstr("cuStreamWaitEvent\ncublasLtMatmul 16x16x16 epilogue 1"));
  EXPECT_FALSE(device_->Execute(*other, *op, buffers, 2).ok());
}

// The library has no algorithm for the alignment of the operands.
TEST_F(ProductCallsTest, ProductsOfBadlyAlignedOperandsAreMoved) {
  constexpr int64_t kBytes = 8 * 8 * 4;
  device::GemmDesc desc;
  desc.m = desc.n = desc.k = 8;
  desc.lhs_strides = desc.rhs_strides = desc.out_strides = {0, 8, 1};
  desc.has_bias = true;
  const std::vector<const void*> constants(4);
  const auto at_any = std::move(device_->PrepareGemm(desc, constants)).value();
  recording_.FailNext("cublasLtMatmulAlgoGetHeuristic", kCuInvalidValue);
  const auto aligned = std::move(device_->PrepareGemm(desc, constants)).value();
  EXPECT_EQ(aligned->Description(), "cuBLASLt");
  std::vector<float> values(4 * 68);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i % 7) - 3;
  const int64_t bytes = static_cast<int64_t>(4 * values.size());
  // Memory content after a product of operands from byte `first` on.
  const auto run = [&](device::LibraryOp& op, int64_t first) {
    const auto memory =
        std::move(device::Allocation::Make(*device_, bytes)).value();
    EXPECT_TRUE(
        device_->CopyToDevice(*stream_, memory.data(), values.data(), bytes)
            .ok());
    char* const at = memory.data() + first;
    void* buffers[] = {at, at + kBytes, at + 2 * kBytes, at + 3 * kBytes};
    recording_.TakeLog();
    EXPECT_TRUE(device_->Execute(*stream_, op, buffers, 4).ok());
    std::vector<float> found(values.size());
    EXPECT_TRUE(
        device_->CopyToHost(*stream_, found.data(), memory.data(), bytes).ok());
    return found;
  };
  const std::vector<float> expected = run(*at_any, 4);
  EXPECT_THAT(recording_.TakeLog(), Not(HasSubstr("partita_copy_box")));
  EXPECT_EQ(run(*aligned, 4), expected);
  EXPECT_THAT(recording_.TakeLog(), HasSubstr("partita_copy_box"));
  EXPECT_EQ(run(*aligned, 16), run(*at_any, 16));
  EXPECT_THAT(recording_.TakeLog(), Not(HasSubstr("partita_copy_box")));
}

// The recorded library splits sums and rounds their parts to 16 bits, unless
// the caller forbids it: 256 + 1 would become 256 before the last 1 is added.
TEST_F(ProductCallsTest, PartsOfSplitProductsAreF32) {
  constexpr uint16_t kOne = 0x3f80, k256 = 0x4380, k258 = 0x4381;
  device::GemmDesc desc;
  desc.dtype = base::DType::kBF16;
  desc.m = desc.n = 8;
  desc.k = 16;
  desc.lhs_strides = {0, 16, 1};
  desc.rhs_strides = desc.out_strides = {0, 8, 1};
  const auto op =
      std::move(device_->PrepareGemm(desc, std::vector<const void*>(3)))
          .value();
  ASSERT_EQ(op->Description(), "cuBLASLt");
  std::vector<uint16_t> values(8 * 16 + 16 * 8 + 8 * 8);
  for (size_t row = 0; row < 8; ++row) {
    values[16 * row] = k256;
    values[16 * row + 1] = values[16 * row + 8] = kOne;
  }
  std::fill(values.begin() + 8 * 16, values.begin() + 2 * 8 * 16, kOne);
  const int64_t bytes = static_cast<int64_t>(2 * values.size());
  const auto memory =
      std::move(device::Allocation::Make(*device_, bytes)).value();
  ASSERT_TRUE(
      device_->CopyToDevice(*stream_, memory.data(), values.data(), bytes)
          .ok());
  void* buffers[] = {memory.data(), memory.data() + 256, memory.data() + 512};
  ASSERT_TRUE(device_->Execute(*stream_, *op, buffers, 3).ok());
  std::vector<uint16_t> sums(8 * 8);
  ASSERT_TRUE(
      device_->CopyToHost(*stream_, sums.data(), memory.data() + 512, 128)
          .ok());
  EXPECT_EQ(sums, std::vector<uint16_t>(8 * 8, k258));
}

// The library computes what training needs in its epilogues: a pre-activation,
// the gradient of GELU, and the gradient of a bias.
TEST_F(ProductCallsTest, ProductsOfTrainingAreOneCall) {
  const auto memory =
      std::move(device::Allocation::Make(*device_, 4096)).value();
  const auto log = [&](const device::GemmDesc& desc) {
    recording_.TakeLog();
    const int count = device::OperandCount(desc);
    const auto op =
        std::move(device_->PrepareGemm(desc, std::vector<const void*>(
                                                 static_cast<size_t>(count))))
            .value();
    EXPECT_EQ(op->Description(), "cuBLASLt");
    std::vector<void*> buffers;
    for (int i = 0; i < count; ++i) buffers.push_back(memory.data() + 512 * i);
    EXPECT_TRUE(device_->Execute(*stream_, *op, buffers.data(), count).ok());
    EXPECT_TRUE(device_->Synchronize(*stream_).ok());
    const std::string text = recording_.TakeLog();
    EXPECT_THAT(text, Not(HasSubstr("cuLaunchKernel")));
    return text;
  };
  device::GemmDesc desc;
  desc.dtype = base::DType::kBF16;
  desc.m = 8, desc.n = 16, desc.k = 8;
  desc.lhs_strides = {0, 8, 1};
  desc.rhs_strides = desc.out_strides = {0, 16, 1};
  desc.sums = device::Sums::kRhs;
  EXPECT_THAT(log(desc), HasSubstr("16x8x8 epilogue 256 "));
  desc.sums = device::Sums::kLhs;
  EXPECT_THAT(log(desc), HasSubstr("16x8x8 epilogue 512 "));
  desc.sums = device::Sums::kNone;
  desc.activation = device::Activation::kGeluTanh;
  desc.preactivation = device::Preactivation::kGiven;
  EXPECT_THAT(log(desc), HasSubstr("16x8x8 epilogue 192 "));
  desc.preactivation = device::Preactivation::kKept;
  EXPECT_THAT(log(desc), HasSubstr("16x8x8 epilogue 160 "));
  desc.has_bias = true;
  EXPECT_THAT(log(desc), HasSubstr("16x8x8 epilogue 164 "));
  EXPECT_TRUE(device_->Warnings().empty());
}

// A library that lacks these multiplies only, and a warning says so.
TEST_F(ProductCallsTest, OwnKernelsFinishWhatTheLibraryDoesNot) {
  const auto describe = [&](const device::GemmDesc& desc, CuResult result,
                            int failures) {
    recording_.FailNext(recording::kTrainingEpilogue, result, failures);
    const auto op = device_->PrepareGemm(
        desc, std::vector<const void*>(
                  static_cast<size_t>(device::OperandCount(desc))));
    EXPECT_TRUE(op.ok()) << op.status();
    return (*op)->Description();
  };
  device::GemmDesc desc;
  desc.dtype = base::DType::kBF16;
  desc.m = desc.n = desc.k = 8;
  desc.lhs_strides = desc.rhs_strides = desc.out_strides = {0, 8, 1};
  desc.sums = device::Sums::kRhs;
  EXPECT_EQ(describe(desc, kCuNotFound, 2), "cuBLASLt and own kernel");
  desc.sums = device::Sums::kNone;
  desc.activation = device::Activation::kGeluTanh;
  desc.preactivation = device::Preactivation::kGiven;
  EXPECT_EQ(describe(desc, kCuNotFound, 2), "cuBLASLt and own kernel");
  ASSERT_EQ(device_->Warnings().size(), 1u);
  EXPECT_THAT(device_->Warnings()[0],
              HasSubstr("the library multiplies without the activation or the "
                        "sums of 2 matrix products"));
  // It calls an epilogue that it does not know invalid.
  EXPECT_EQ(describe(desc, kCuInvalidValue, 1), "cuBLASLt and own kernel");
  EXPECT_EQ(device_->Warnings().size(), 2u);
}

}  // namespace
}  // namespace partita::cuda
