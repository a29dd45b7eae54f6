// Attention by cuDNN on a recorded library: its values, the choice between it
// and the compiler's kernel, and the launch wherever the library fails.
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/recording/recording.h"

namespace partita::cuda {
namespace {

using base::DType;
using device::AttentionDesc;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Floats = std::vector<float>;

constexpr char kLibrary[] = "runtime/cuda/recording/librecording.so";
// Operands: q, k and v in one buffer, out, lse; then scratch.
constexpr char kPtx[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry attend(.param .u64 a, .param .u64 b, .param .u64 c, "
    ".param .u64 d) { ret; }\n";
constexpr int64_t kLaunchScratch = 512;
constexpr float kSlow = 100, kFast = 0.5f;  // milliseconds of the launch

// The compiler's kernel computes the same; here it leaves a mark instead.
constexpr uint16_t kMark = 0x4242;
void Attend(void** parameters, const recording::Place&) {
  **static_cast<uint16_t**>(parameters[1]) = kMark;
}

float ToFloat(DType dtype, uint16_t bits) {
  if (dtype == DType::kBF16) {
    const uint32_t wide = static_cast<uint32_t>(bits) << 16;
    float value = 0;
    std::memcpy(&value, &wide, sizeof(value));
    return value;
  }
  _Float16 value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return static_cast<float>(value);
}

// Multiples of 1/64 in [-2, 2), which are exact in f16 and bf16.
Floats Numbers(size_t count) {
  Floats values(count);
  uint32_t state = 12345;
  for (float& value : values) {
    state = state * 1664525 + 1013904223;
    value = static_cast<float>(static_cast<int>(state >> 24) - 128) / 64;
  }
  return values;
}

uint16_t ToBits(DType dtype, float value) {
  uint16_t bits = 0;
  if (dtype == DType::kF16) {
    const auto half = static_cast<_Float16>(value);
    std::memcpy(&bits, &half, sizeof(bits));
  } else {
    uint32_t wide = 0;
    std::memcpy(&wide, &value, sizeof(wide));
    bits = static_cast<uint16_t>(wide >> 16);
  }
  return bits;
}

// Grouped queries that read a joint buffer of q, k and v by tokens, as models
// do: [batch, keys, heads + 2 groups, size]. The queries are the last tokens.
AttentionDesc Describe(DType dtype, bool causal) {
  AttentionDesc desc;
  desc.dtype = dtype;
  desc.batch = 2;
  desc.heads = 4;
  desc.groups = 2;
  desc.queries = 5;
  desc.keys = 7;
  desc.size = desc.value_size = 8;
  desc.scale = 0.25;
  desc.causal = causal;
  desc.causal_offset = causal ? 2 : 0;
  const int64_t token = (desc.heads + 2 * desc.groups) * desc.size;
  const std::array<int64_t, 3> strides = {desc.keys * token, desc.size, token};
  desc.q = {0, 2 * token, strides};
  desc.k = {0, desc.heads * desc.size, strides};
  desc.v = {0, (desc.heads + desc.groups) * desc.size, strides};
  const int64_t row = desc.heads * desc.value_size;
  desc.out = {1, 0, {desc.queries * row, desc.value_size, row}};
  desc.lse = 2;
  return desc;
}

struct Results {
  Floats out, lse;
};

Results Reference(const AttentionDesc& d, const Floats& joint) {
  Results results;
  results.out.resize(
      static_cast<size_t>(d.batch * d.queries * d.heads * d.value_size));
  const auto at = [](const AttentionDesc::Tensor& t, int64_t b, int64_t n,
                     int64_t i) {
    return static_cast<size_t>(t.offset + b * t.strides[0] + n * t.strides[1] +
                               i * t.strides[2]);
  };
  for (int64_t b = 0; b < d.batch; ++b)
    for (int64_t n = 0; n < d.heads; ++n)
      for (int64_t i = 0; i < d.queries; ++i) {
        const int64_t g = n / (d.heads / d.groups);
        const int64_t end =
            d.causal ? std::min(d.keys, i + d.causal_offset + 1) : d.keys;
        std::vector<double> weights;
        double sum = 0;
        for (int64_t j = 0; j < end; ++j) {
          double score = 0;
          for (size_t c = 0; c < static_cast<size_t>(d.size); ++c)
            score += static_cast<double>(joint[at(d.q, b, n, i) + c]) *
                     static_cast<double>(joint[at(d.k, b, g, j) + c]);
          weights.push_back(std::exp(score * d.scale));
          sum += weights.back();
        }
        results.lse.push_back(static_cast<float>(std::log(sum)));
        for (size_t c = 0; c < static_cast<size_t>(d.value_size); ++c) {
          double value = 0;
          for (size_t j = 0; j < weights.size(); ++j)
            value += weights[j] / sum *
                     static_cast<double>(
                         joint[at(d.v, b, g, static_cast<int64_t>(j)) + c]);
          results.out[at(d.out, b, n, i) + c] = static_cast<float>(value);
        }
      }
  return results;
}

class AttentionTest : public ::testing::Test {
 protected:
  AttentionTest() : recording_(kLibrary) {
    folder_ = ::testing::TempDir() + "/attention_XXXXXX";
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    options_ = {0, kLibrary, "none", kLibrary};
    options_.tuned = folder_ + "/model.algorithms";
    options_.measures = true;
    recording_.Register("attend", &Attend);
    recording_.SetLaunchTime(kSlow);
  }
  ~AttentionTest() override {
    recording_.SetLaunchTime(0);
    std::filesystem::remove_all(folder_);
    EXPECT_EQ(recording_.UsedBytes(), 0u);
  }

  struct Ran {
    bool by_launch = false;  // the device prepared no operation
    std::string log;
    Results results;
    uint16_t first = 0;  // bits of the first element of out
    std::vector<std::string> warnings;
  };
  // Prepares an attention on a new device. Runs the operation, if there is one,
  // on operands that begin `shift` bytes into aligned memory.
  Ran Run(const AttentionDesc& desc, int64_t shift = 0) {
    Ran ran;
    const auto device = std::move(MakeCudaDevice(options_)).value();
    const auto stream = std::move(device->CreateStream()).value();
    const auto module = std::move(device->LoadModule(kPtx)).value();
    const Floats joint = Numbers(static_cast<size_t>(
        desc.batch * desc.keys * (desc.heads + 2 * desc.groups) * desc.size));
    const int64_t rows = desc.batch * desc.heads * desc.queries;
    const std::vector<int64_t> bytes = {static_cast<int64_t>(joint.size()) * 2,
                                        rows * desc.value_size * 2, rows * 4};
    device::LaunchShape shape;
    shape.grid = {1, 1, 1};
    shape.block = {1, 1, 1};
    shape.scratch_bytes = kLaunchScratch;
    EXPECT_TRUE(device->ReserveLaunchScratch(kLaunchScratch).ok());
    auto op = device->PrepareAttention(desc, *module->Find("attend").value(),
                                       shape, bytes);
    EXPECT_TRUE(op.ok()) << op.status();
    ran.warnings = device->Warnings();
    ran.by_launch = op.ok() && *op == nullptr;
    if (!op.ok() || ran.by_launch) return ran;
    EXPECT_EQ((*op)->Description(), "cuDNN");
    std::vector<device::Allocation> memory;
    void* buffers[3];
    for (size_t i = 0; i < bytes.size(); ++i) {
      memory.push_back(
          device::Allocation::Make(*device, bytes[i] + shift).value());
      buffers[i] = memory.back().data() + shift;
    }
    std::vector<uint16_t> bits;
    for (const float value : joint) bits.push_back(ToBits(desc.dtype, value));
    EXPECT_TRUE(
        device->CopyToDevice(*stream, buffers[0], bits.data(), bytes[0]).ok());
    recording_.TakeLog();
    EXPECT_TRUE(device->Execute(*stream, **op, buffers, 3).ok());
    EXPECT_TRUE(device->Synchronize(*stream).ok());
    ran.log = recording_.TakeLog();
    std::vector<uint16_t> out(static_cast<size_t>(bytes[1] / 2));
    ran.results.lse.resize(static_cast<size_t>(rows));
    EXPECT_TRUE(
        device->CopyToHost(*stream, out.data(), buffers[1], bytes[1]).ok());
    EXPECT_TRUE(
        device
            ->CopyToHost(*stream, ran.results.lse.data(), buffers[2], bytes[2])
            .ok());
    EXPECT_TRUE(device->Synchronize(*stream).ok());
    ran.first = out[0];
    for (const uint16_t value : out)
      ran.results.out.push_back(ToFloat(desc.dtype, value));
    return ran;
  }
  std::string File() const {
    std::ifstream in(options_.tuned);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }

  recording::Recording recording_;
  std::string folder_;
  CudaOptions options_;
};

TEST_F(AttentionTest, TheGraphComputesAttention) {
  for (const DType dtype : {DType::kF16, DType::kBF16})
    for (const bool causal : {false, true}) {
      SCOPED_TRACE(base::NameOf(dtype) + std::string(causal ? " causal" : ""));
      const AttentionDesc desc = Describe(dtype, causal);
      const Ran ran = Run(desc);
      ASSERT_FALSE(ran.by_launch);
      const Results expected = Reference(
          desc, Numbers(static_cast<size_t>(desc.batch * desc.keys *
                                            (desc.heads + 2 * desc.groups) *
                                            desc.size)));
      ASSERT_EQ(ran.results.out.size(), expected.out.size());
      // Weights and results are rounded to 16 bits.
      const float tolerance = dtype == DType::kF16 ? 4e-3f : 3e-2f;
      for (size_t i = 0; i < expected.out.size(); ++i)
        ASSERT_NEAR(ran.results.out[i], expected.out[i], tolerance) << i;
      for (size_t i = 0; i < expected.lse.size(); ++i)
        ASSERT_NEAR(ran.results.lse[i], expected.lse[i], 1e-5) << i;
    }
}

TEST_F(AttentionTest, NobodyNeedsTheLogSumExp) {
  AttentionDesc desc = Describe(DType::kBF16, true);
  const Ran with = Run(desc);
  desc.lse = -1;
  const Ran without = Run(desc);
  ASSERT_FALSE(without.by_launch);
  EXPECT_EQ(with.results.out, without.results.out);
}

// Engine 3 is the recorded library's fastest one that keeps the numbers.
TEST_F(AttentionTest, TheFasterOneIsTakenAndKept) {
  const AttentionDesc desc = Describe(DType::kBF16, true);
  EXPECT_THAT(Run(desc).log,
              AllOf(HasSubstr("engine 3\n"), Not(HasSubstr("attend"))));
  EXPECT_THAT(File(), AllOf(HasSubstr("mode3-engine3-0 "),
                            HasSubstr(" attention bf16 2 heads 4/2 positions "
                                      "5,7 sizes 8,8 causal 2 lse q ")));
  // Several ranks do not measure: they launch, whatever was kept, and do not
  // open the library.
  options_.measures = false;
  recording_.SetLaunchTime(kFast);
  recording_.TakeLog();
  EXPECT_TRUE(Run(desc).by_launch);
  EXPECT_THAT(recording_.TakeLog(), Not(HasSubstr("cudnn")));
  // The kept plan needs no measurement.
  options_.measures = true;
  EXPECT_FALSE(Run(desc).by_launch);
  std::filesystem::remove(options_.tuned);
  EXPECT_TRUE(Run(desc).by_launch);
  EXPECT_THAT(File(), HasSubstr("launch "));
  // A kept launch costs no time of the library.
  recording_.SetLaunchTime(kSlow);
  recording_.TakeLog();
  EXPECT_TRUE(Run(desc).by_launch);
  EXPECT_THAT(recording_.TakeLog(), Not(HasSubstr("cudnnBackend")));
}

TEST_F(AttentionTest, WhatTheLibraryDoesNotDoIsLaunched) {
  const AttentionDesc desc = Describe(DType::kF16, true);
  for (const char* call :
       {"cudnnBackendFinalize", recording::kFinalizeHeuristics,
        recording::kGetHeuristicsResults, recording::kFinalizePlan,
        recording::kGetPlanWorkspace}) {
    SCOPED_TRACE(call);
    for (const int status : {3000, 3008, 5001}) {
      recording_.FailNext(call, static_cast<CuResult>(status), 1 << 20);
      const Ran ran = Run(desc);
      EXPECT_TRUE(ran.by_launch);
      EXPECT_THAT(ran.warnings, IsEmpty());
    }
    recording_.FailNext(call, kCuSuccess, 0);
  }
  // Rows that do not begin at multiples of 16 bytes.
  AttentionDesc narrow = desc;
  narrow.q.strides[2] += 2;
  EXPECT_TRUE(Run(narrow).by_launch);
  options_.dnn = "none";
  EXPECT_TRUE(Run(desc).by_launch);
}

TEST_F(AttentionTest, OperandsThatAreNotAlignedAreLaunched) {
  const AttentionDesc desc = Describe(DType::kF16, false);
  const Ran ran = Run(desc, /*shift=*/2);
  ASSERT_FALSE(ran.by_launch);
  EXPECT_THAT(ran.log, AllOf(HasSubstr("cuLaunchKernel attend"),
                             Not(HasSubstr("engine"))));
  EXPECT_EQ(ran.first, kMark);
}

}  // namespace
}  // namespace partita::cuda
