// The recording cuBLASLt records the memory that each product reads and writes,
// so that missing edges between products and other operations are found.
#include <dlfcn.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/cuda/blas_api.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/recording/recording.h"

namespace partita::cuda {
namespace {

constexpr char kLibrary[] = "runtime/cuda/recording/librecording.so";
constexpr int64_t kBytes = 1024;  // of an operand: 16 x 16 floats

class ProductMemoryTest : public ::testing::Test {
 protected:
  ProductMemoryTest()
      : recording_(kLibrary),
        device_(std::move(MakeCudaDevice({0, kLibrary, kLibrary})).value()),
        stream_(std::move(device_->CreateStream()).value()),
        other_(std::move(device_->CreateStream()).value()),
        memory_(
            std::move(device::Allocation::Make(*device_, 8 * kBytes)).value()) {
    recording_.Watch();
  }

  static device::GemmDesc Square() {
    device::GemmDesc desc;
    desc.m = desc.n = desc.k = 16;
    desc.lhs_strides = desc.rhs_strides = desc.out_strides = {0, 16, 1};
    return desc;
  }
  char* At(int operand) { return memory_.data() + operand * kBytes; }

  // Runs the product, and copies `bytes` of an operand on another stream,
  // unordered. Returns the races.
  std::string RaceWith(device::LibraryOp& product, int count, int operand,
                       int64_t bytes, bool overwrites) {
    std::vector<void*> buffers;
    for (int i = 0; i < count; ++i) buffers.push_back(At(i));
    EXPECT_TRUE(
        device_->Execute(*stream_, product, buffers.data(), count).ok());
    char* const spare = At(7);
    EXPECT_TRUE(device_
                    ->Copy(*other_, overwrites ? At(operand) : spare,
                           overwrites ? spare : At(operand), bytes)
                    .ok());
    std::string races = recording_.TakeRaces();
    EXPECT_TRUE(device_->Synchronize(*stream_).ok());
    EXPECT_TRUE(device_->Synchronize(*other_).ok());
    // A later copy has waited for the product.
    EXPECT_TRUE(device_->Copy(*other_, spare, At(operand), bytes).ok());
    EXPECT_TRUE(device_->Synchronize(*other_).ok());
    EXPECT_EQ(recording_.TakeRaces(), "");
    return races;
  }
  // Checks that the product reads its first operands and writes its last ones,
  // `outputs` in number. `bytes` of each operand may be touched.
  void ExpectOperands(const device::GemmDesc& desc, int outputs,
                      const std::vector<int64_t>& bytes) {
    const int count = static_cast<int>(bytes.size());
    const auto product =
        std::move(
            device_->PrepareGemm(desc, std::vector<const void*>(bytes.size())))
            .value();
    ASSERT_EQ(product->Description(), "cuBLASLt");
    for (int operand = 0; operand < count; ++operand) {
      SCOPED_TRACE(operand);
      const int64_t size = bytes[static_cast<size_t>(operand)];
      const bool writes = operand >= count - outputs;
      EXPECT_NE(RaceWith(*product, count, operand, size, true), "");
      EXPECT_EQ(RaceWith(*product, count, operand, size, false) != "", writes);
    }
  }

  recording::Recording recording_;
  std::unique_ptr<device::Device> device_;
  std::unique_ptr<device::Stream> stream_, other_;
  device::Allocation memory_;
};

TEST_F(ProductMemoryTest, FactorsBiasResidualAndResultAreRecorded) {
  device::GemmDesc desc = Square();
  desc.has_bias = desc.has_residual = true;
  ExpectOperands(desc, 1, {kBytes, kBytes, 64, kBytes, kBytes});
}

TEST_F(ProductMemoryTest, PreactivationsAreRecorded) {
  device::GemmDesc desc = Square();
  desc.dtype = base::DType::kBF16;
  desc.activation = device::Activation::kGeluTanh;
  desc.preactivation = device::Preactivation::kKept;
  ExpectOperands(desc, 2, {512, 512, 512, 512});
  desc.preactivation = device::Preactivation::kGiven;
  ExpectOperands(desc, 1, {512, 512, 512, 512});
}

TEST_F(ProductMemoryTest, SumsOfFactorsAreRecorded) {
  device::GemmDesc desc = Square();
  desc.dtype = base::DType::kBF16;
  for (const device::Sums sums : {device::Sums::kLhs, device::Sums::kRhs}) {
    desc.sums = sums;
    ExpectOperands(desc, 2, {512, 512, 512, 32});
  }
}

TEST_F(ProductMemoryTest, SmallFloatsAndTheirScaleAreRecorded) {
  device::GemmDesc desc = Square();
  desc.dtype = base::DType::kBF16;
  desc.factors = device::Factors::kF8;
  desc.rhs_strides = {0, 1, 16};
  ExpectOperands(desc, 1, {256, 256, 4, 512});
}

// Only a part of the operands is touched: a copy beside a row is no race.
TEST_F(ProductMemoryTest, WhatLiesBesideOperandsIsNotRecorded) {
  device::GemmDesc desc = Square();
  desc.m = 8;
  const auto product =
      std::move(device_->PrepareGemm(desc, std::vector<const void*>(3)))
          .value();
  void* buffers[] = {At(0), At(1), At(2)};
  ASSERT_TRUE(device_->Execute(*stream_, *product, buffers, 3).ok());
  EXPECT_TRUE(device_->Copy(*other_, At(0) + 512, At(7), 512).ok());
  EXPECT_TRUE(device_->Copy(*other_, At(2) + 512, At(7), 512).ok());
  EXPECT_EQ(recording_.TakeRaces(), "");
}

// Two products of two streams in one workspace, without an event between them.
// The device hands its workspace over itself, so the library is called here.
TEST_F(ProductMemoryTest, TheWorkspaceIsRecorded) {
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr);
  struct {
#define PARTITA_TEST_MEMBER(member, symbol, parameters) \
  LtStatus(*member) parameters = nullptr;
    PARTITA_CUDA_BLAS_FUNCTIONS(PARTITA_TEST_MEMBER)
#undef PARTITA_TEST_MEMBER
  } blas;
#define PARTITA_TEST_LOAD(member, symbol, parameters) \
  blas.member =                                       \
      reinterpret_cast<LtStatus(*) parameters>(dlsym(library, #symbol));
  PARTITA_CUDA_BLAS_FUNCTIONS(PARTITA_TEST_LOAD)
#undef PARTITA_TEST_LOAD
  LtMatmul matmul = nullptr;
  LtLayout square = nullptr;
  LtPreference preference = nullptr;
  ASSERT_EQ(blas.CreateMatmul(&matmul, kLtComputeF32, kLtF32), kLtSuccess);
  ASSERT_EQ(blas.CreateLayout(&square, kLtF32, 16, 16, 16), kLtSuccess);
  ASSERT_EQ(blas.CreatePreference(&preference), kLtSuccess);
  const uint64_t limit = kBytes * 8;
  ASSERT_EQ(blas.SetPreference(preference, kLtMaxWorkspaceBytes, &limit,
                               sizeof(limit)),
            kLtSuccess);
  // Else the recorded library splits sums, and rounds them in its own memory.
  const uint32_t reductions = kLtReduceInComputeType;
  ASSERT_EQ(blas.SetPreference(preference, kLtReductionSchemes, &reductions,
                               sizeof(reductions)),
            kLtSuccess);
  LtHeuristic choice;
  int found = 0;
  ASSERT_EQ(blas.Heuristics(nullptr, matmul, square, square, square, square,
                            preference, 1, &choice, &found),
            kLtSuccess);
  ASSERT_EQ(found, 1);
  const auto workspace =
      std::move(device::Allocation::Make(
                    *device_, static_cast<int64_t>(choice.workspace_bytes)))
          .value();
  const float one = 1, zero = 0;
  const auto multiply = [&](device::Stream& stream, int result) {
    ASSERT_EQ(blas.Multiply(nullptr, matmul, &one, At(0), square, At(1), square,
                            &zero, At(result), square, At(result), square,
                            &choice.algorithm, workspace.data(),
                            choice.workspace_bytes, stream.native_handle()),
              kLtSuccess);
  };
  multiply(*stream_, 2);
  multiply(*other_, 3);
  EXPECT_EQ(recording_.TakeRaces(),
            "cublasLtMatmul writes what cublasLtMatmul writes\n");
  ASSERT_TRUE(device_->Synchronize(*stream_).ok());
  ASSERT_TRUE(device_->Synchronize(*other_).ok());
  multiply(*stream_, 2);
  ASSERT_TRUE(device_->Synchronize(*stream_).ok());
  multiply(*other_, 3);
  EXPECT_EQ(recording_.TakeRaces(), "");
  blas.DestroyPreference(preference);
  blas.DestroyLayout(square);
  blas.DestroyMatmul(matmul);
}

}  // namespace
}  // namespace partita::cuda
