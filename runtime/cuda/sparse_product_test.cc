// Products with weights of the 2:4 pattern, by the recording cuSPARSELt.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/recording/recording.h"
#include "runtime/cuda/two_of_four.h"

namespace partita::cuda {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kLibrary[] = "runtime/cuda/recording/librecording.so";
constexpr int64_t kM = 8, kN = 16, kK = 32;

TEST(TwoOfFourTest, GroupsAreCounted) {
  constexpr uint16_t kMinusZero = 0x8000;
  const std::vector<uint16_t> row = {1, 0, 0, 2, 0, 0, 0, kMinusZero};
  EXPECT_TRUE(AreTwoOfFour(row.data(), 2, 4, 1));
  const std::vector<uint16_t> full = {1, 0, 0, 2, 1, 2, 0, 3};
  EXPECT_TRUE(AreTwoOfFour(full.data(), 1, 4, 1));
  EXPECT_FALSE(AreTwoOfFour(full.data(), 2, 4, 1));
  // Groups of every second number.
  EXPECT_TRUE(AreTwoOfFour(full.data(), 1, 1, 2));
  EXPECT_FALSE(AreTwoOfFour(full.data(), 2, 1, 2));
}

class SparseProductTest : public ::testing::Test {
 protected:
  SparseProductTest() : recording_(kLibrary) { Open(kLibrary); }
  ~SparseProductTest() override {
    memory_.reset();
    stream_.reset();
    device_.reset();
    EXPECT_EQ(recording_.UsedBytes(), 0u);
  }
  void Open(const std::string& sparse) {
    memory_.reset();
    stream_.reset();
    CudaOptions options = {0, kLibrary, kLibrary, "none"};
    options.sparse = sparse;
    device_ = std::move(MakeCudaDevice(options)).value();
    stream_ = std::move(device_->CreateStream()).value();
    memory_ = std::make_unique<device::Allocation>(
        std::move(device::Allocation::Make(*device_, 8 * 1024)).value());
  }
  // With k contiguous in the weight, as [n, k], or n, as [k, n].
  static device::GemmDesc Linear(bool k_contiguous) {
    device::GemmDesc desc;
    desc.dtype = base::DType::kBF16;
    desc.m = kM;
    desc.n = kN;
    desc.k = kK;
    desc.lhs_strides = {0, kK, 1};
    desc.rhs_strides = {0, k_contiguous ? 1 : kN, k_contiguous ? kK : 1};
    desc.out_strides = {0, kN, 1};
    return desc;
  }
  // bf16 of a small whole number.
  static uint16_t Bits(int number) {
    const float value = static_cast<float>(number);
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    return static_cast<uint16_t>(bits >> 16);
  }
  static std::vector<uint16_t> Numbers(int64_t count) {
    std::vector<uint16_t> numbers;
    for (int64_t i = 0; i < count; ++i)
      numbers.push_back(Bits(static_cast<int>(i * 7 % 5) - 2));
    return numbers;
  }
  // Two of four are not 0, at places that differ from group to group.
  static std::vector<uint16_t> Weight(bool k_contiguous) {
    std::vector<uint16_t> weight(static_cast<size_t>(kN * kK), 0);
    for (int64_t n = 0; n < kN; ++n)
      for (int64_t group = 0; group < kK / 4; ++group)
        for (int64_t i = 0; i < 2; ++i) {
          const int64_t k = 4 * group + (n + group + i * (1 + n % 3)) % 4;
          weight[static_cast<size_t>(k_contiguous ? n * kK + k : k * kN + n)] =
              Bits(static_cast<int>((n + k) % 3) + 1);
        }
    return weight;
  }
  char* At(int operand, int64_t offset = 0) {
    return memory_->data() + operand * 1024 + offset;
  }
  void Put(void* target, const std::vector<uint16_t>& numbers) {
    ASSERT_TRUE(device_
                    ->CopyToDevice(*stream_, target, numbers.data(),
                                   static_cast<int64_t>(2 * numbers.size()))
                    .ok());
    ASSERT_TRUE(device_->Synchronize(*stream_).ok());
  }
  // Prepares the product with the weight, and a bias if it has one, constant.
  std::unique_ptr<device::LibraryOp> Prepare(
      const device::GemmDesc& desc, const std::vector<uint16_t>& weight) {
    Put(At(0), Numbers(kM * kK));
    Put(At(1), weight);
    for (int i = 2; i < 5; ++i)
      Put(At(i), Numbers(i == 2 && desc.has_bias ? kN : kM * kN));
    std::vector<const void*> constants(
        static_cast<size_t>(device::OperandCount(desc)));
    constants[1] = At(1);
    if (desc.has_bias) constants[2] = At(2);
    auto op = device_->PrepareGemm(desc, constants);
    EXPECT_TRUE(op.ok()) << op.status();
    return op.ok() ? *std::move(op) : nullptr;
  }
  std::vector<uint16_t> Run(const device::GemmDesc& desc, device::LibraryOp& op,
                            int64_t offset = 0) {
    std::vector<void*> buffers;
    for (int i = 0; i < device::OperandCount(desc); ++i)
      buffers.push_back(At(i));
    // Moves the result.
    buffers.back() = At(device::OperandCount(desc) - 1, offset);
    EXPECT_TRUE(
        device_
            ->Execute(*stream_, op, buffers.data(), device::OperandCount(desc))
            .ok());
    std::vector<uint16_t> result(static_cast<size_t>(kM * kN));
    EXPECT_TRUE(
        device_
            ->CopyToHost(*stream_, result.data(), buffers.back(), 2 * kM * kN)
            .ok());
    return result;
  }
  // Result of the same product by cuBLASLt.
  std::vector<uint16_t> Dense(const device::GemmDesc& desc,
                              const std::vector<uint16_t>& weight) {
    Open("none");
    const auto op = Prepare(desc, weight);
    EXPECT_EQ(op->Description(), "cuBLASLt");
    return Run(desc, *op);
  }

  recording::Recording recording_;
  std::unique_ptr<device::Device> device_;
  std::unique_ptr<device::Stream> stream_;
  std::unique_ptr<device::Allocation> memory_;
};

TEST_F(SparseProductTest, ItsNumbersAreThoseOfTheDenseProduct) {
  for (const bool k_contiguous : {false, true})
    for (const bool bias : {false, true})
      for (const bool relu : {false, true}) {
        SCOPED_TRACE(::testing::Message() << k_contiguous << bias << relu);
        device::GemmDesc desc = Linear(k_contiguous);
        desc.has_bias = bias;
        desc.has_residual = !relu;
        if (relu) desc.activation = device::Activation::kRelu;
        const std::vector<uint16_t> weight = Weight(k_contiguous);
        Open(kLibrary);
        recording_.TakeLog();
        std::vector<uint16_t> result;
        {
          const auto op = Prepare(desc, weight);
          ASSERT_NE(op, nullptr);
          EXPECT_EQ(op->Description(), "cuSPARSELt");
          result = Run(desc, *op);
          EXPECT_THAT(recording_.TakeLog(),
                      HasSubstr("cusparseLtMatmul 16x8x32"));
          EXPECT_THAT(device_->Warnings(), IsEmpty());
          // In a row of memory that is not aligned, cuBLASLt multiplies.
          EXPECT_EQ(Run(desc, *op, 2), result);
          EXPECT_THAT(recording_.TakeLog(),
                      AllOf(HasSubstr("cublasLtMatmul"),
                            Not(HasSubstr("cusparseLtMatmul"))));
        }
        EXPECT_EQ(Dense(desc, weight), result);
      }
}

// One number too many, in the last group.
TEST_F(SparseProductTest, OtherWeightsStayDense) {
  for (const bool k_contiguous : {false, true}) {
    std::vector<uint16_t> weight = Weight(k_contiguous);
    const device::GemmDesc desc = Linear(k_contiguous);
    for (int64_t k = kK - 4; k < kK; ++k)
      weight[static_cast<size_t>(k_contiguous ? (kN - 1) * kK + k
                                              : k * kN + kN - 1)] = Bits(1);
    EXPECT_EQ(Prepare(desc, weight)->Description(), "cuBLASLt");
  }
  EXPECT_THAT(device_->Warnings(), IsEmpty());
}

TEST_F(SparseProductTest, WeightsThatChangeStayDense) {
  const device::GemmDesc desc = Linear(true);
  Put(At(1), Weight(true));
  const auto op =
      std::move(device_->PrepareGemm(desc, std::vector<const void*>(3)))
          .value();
  EXPECT_EQ(op->Description(), "cuBLASLt");
}

TEST_F(SparseProductTest, OtherProductsStayDense) {
  device::GemmDesc desc = Linear(true);
  desc.activation = device::Activation::kGeluTanh;
  EXPECT_EQ(Prepare(desc, Weight(true))->Description(), "cuBLASLt");
  desc = Linear(true);
  desc.activation = device::Activation::kRelu;
  desc.has_residual = true;  // added after the activation
  EXPECT_EQ(Prepare(desc, Weight(true))->Description(),
            "cuBLASLt and own kernel");
}

TEST_F(SparseProductTest, AReportSaysWhyAProductIsDense) {
  const device::GemmDesc desc = Linear(true);
  recording_.FailNext("cusparseLtMatmulPlanInit", kCuInvalidValue);
  EXPECT_EQ(Prepare(desc, Weight(true))->Description(), "cuBLASLt");
  EXPECT_THAT(device_->Warnings(),
              ElementsAre(HasSubstr(
                  "1 matrix product has a weight in which at least two of four "
                  "numbers are 0 (2:4), and is not computed at the GPU's "
                  "double rate: describing a product with a 2:4 weight: "
                  "cuSPARSELt's status 10 (it has no such product)")));
}

TEST_F(SparseProductTest, ALibraryThatDoesNotStartIsAnError) {
  recording_.FailNext("cusparseLtInit", kCuInvalidValue);
  Put(At(1), Weight(true));
  const auto op = device_->PrepareGemm(Linear(true), {nullptr, At(1), nullptr});
  EXPECT_TRUE(absl::IsFailedPrecondition(op.status())) << op.status();
  EXPECT_THAT(std::string(op.status().message()),
              HasSubstr("starting runtime/cuda/recording/librecording.so: "
                        "cuSPARSELt's status 4"));
}

// No memory is left for the compressed weight: the dense product remains.
TEST_F(SparseProductTest, AFullGpuMultipliesDense) {
  const device::GemmDesc desc = Linear(true);
  Prepare(desc, Weight(false));  // reserves the scratch
  recording_.FailNext("cuMemAlloc_v2", kCuOutOfMemory);
  EXPECT_EQ(Prepare(desc, Weight(true))->Description(), "cuBLASLt");
  EXPECT_THAT(device_->Warnings(),
              ElementsAre(HasSubstr("no room for the compressed weight")));
}

// Room is left for what is allocated later.
TEST_F(SparseProductTest, AnEighthOfTheMemoryStaysFree) {
  const device::GemmDesc desc = Linear(true);
  // The recording GPU has 1 GiB.
  auto others = device::Allocation::Make(*device_, int64_t{895} << 20);
  ASSERT_TRUE(others.ok());
  EXPECT_EQ(Prepare(desc, Weight(true))->Description(), "cuSPARSELt");
  auto more = device::Allocation::Make(*device_, int64_t{1} << 20);
  ASSERT_TRUE(more.ok());
  EXPECT_EQ(Prepare(desc, Weight(true))->Description(), "cuBLASLt");
  EXPECT_THAT(device_->Warnings(),
              ElementsAre(HasSubstr("an eighth of the GPU's memory")));
}

TEST_F(SparseProductTest, TheEnvironmentCanForbidIt) {
  setenv("PARTITA_CUDA_SPARSE", "0", /*overwrite=*/1);
  Open(kLibrary);
  unsetenv("PARTITA_CUDA_SPARSE");
  EXPECT_EQ(Prepare(Linear(true), Weight(true))->Description(), "cuBLASLt");
  EXPECT_THAT(device_->Warnings(), IsEmpty());
}

// An unordered write to the input is found.
TEST_F(SparseProductTest, ItsMemoryIsRecorded) {
  const device::GemmDesc desc = Linear(true);
  const auto op = Prepare(desc, Weight(true));
  const auto other = std::move(device_->CreateStream()).value();
  recording_.Watch();
  for (const int operand : {0, 2}) {
    void* buffers[] = {At(0), At(1), At(2)};
    ASSERT_TRUE(device_->Execute(*stream_, *op, buffers, 3).ok());
    ASSERT_TRUE(device_->Copy(*other, At(operand), At(5), 2).ok());
    EXPECT_THAT(recording_.TakeRaces(), HasSubstr("cusparseLtMatmul"));
    ASSERT_TRUE(device_->Synchronize(*stream_).ok());
    ASSERT_TRUE(device_->Synchronize(*other).ok());
  }
  void* buffers[] = {At(0), At(1), At(2)};
  ASSERT_TRUE(device_->Execute(*stream_, *op, buffers, 3).ok());
  ASSERT_TRUE(device_->Copy(*other, At(6), At(0), 2).ok());
  EXPECT_EQ(recording_.TakeRaces(), "");
}

}  // namespace
}  // namespace partita::cuda
