// Attention by cuDNN on a recorded library: its values, the choice between it
// and the compiler's kernel, and the launch wherever the library fails.
#include <stdlib.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/cuda/attention_testing.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/cuda_executor_testing.h"
#include "runtime/cuda/recording/recording.h"

namespace partita::cuda {
namespace {

using device::AttentionDesc;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

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

  static std::vector<int64_t> OperandBytes(const AttentionDesc& desc) {
    const int64_t rows = desc.batch * desc.heads * desc.queries;
    return {JointSize(desc) * 2, rows * desc.value_size * 2, rows * 4};
  }
  static absl::StatusOr<std::unique_ptr<device::LibraryOp>> Prepare(
      device::Device& device, device::Module& module,
      const AttentionDesc& desc) {
    device::LaunchShape shape;
    shape.grid = {1, 1, 1};
    shape.block = {1, 1, 1};
    shape.scratch_bytes = kLaunchScratch;
    EXPECT_TRUE(device.ReserveLaunchScratch(kLaunchScratch).ok());
    return device.PrepareAttention(desc, *module.Find("attend").value(), shape,
                                   OperandBytes(desc));
  }

  // Plans that the library was asked to prepare.
  static size_t PlansIn(const std::string& log) {
    size_t count = 0;
    for (size_t at = 0;
         (at = log.find(recording::kFinalizePlan, at)) != std::string::npos;
         ++at)
      ++count;
    return count;
  }

  struct Ran {
    bool by_launch = false;     // the device prepared no operation
    std::string prepared, log;  // calls
    AttentionValues results;
    uint16_t first = 0;  // bits of the first element of out
    std::vector<std::string> warnings;
  };
  // Prepares an attention on a new device. Runs the operation, if there is one,
  // on operands that begin `shift` bytes into aligned memory.
  Ran Run(const AttentionDesc& desc, int64_t shift = 0) {
    Ran ran;
    const auto device = std::move(MakeCudaDevice(options_)).value();
    const auto stream = std::move(device->CreateStream()).value();
    const auto module = std::move(device->LoadModule(kAttendPtx)).value();
    const Floats joint = Numbers(static_cast<size_t>(JointSize(desc)));
    const std::vector<int64_t> bytes = OperandBytes(desc);
    recording_.TakeLog();
    auto op = Prepare(*device, *module, desc);
    ran.prepared = recording_.TakeLog();
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
    const std::vector<uint16_t> bits = ToBits(desc.dtype, joint);
    EXPECT_TRUE(
        device->CopyToDevice(*stream, buffers[0], bits.data(), bytes[0]).ok());
    recording_.TakeLog();
    EXPECT_TRUE(device->Execute(*stream, **op, buffers, 3).ok());
    EXPECT_TRUE(device->Synchronize(*stream).ok());
    ran.log = recording_.TakeLog();
    std::vector<uint16_t> out(static_cast<size_t>(bytes[1] / 2));
    ran.results.lse.resize(static_cast<size_t>(bytes[2] / 4));
    EXPECT_TRUE(
        device->CopyToHost(*stream, out.data(), buffers[1], bytes[1]).ok());
    EXPECT_TRUE(
        device
            ->CopyToHost(*stream, ran.results.lse.data(), buffers[2], bytes[2])
            .ok());
    EXPECT_TRUE(device->Synchronize(*stream).ok());
    ran.first = out[0];
    ran.results.out = ToFloats(desc.dtype, out);
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
      const AttentionDesc desc = DescribeAttention(dtype, causal);
      const Ran ran = Run(desc);
      ASSERT_FALSE(ran.by_launch);
      const AttentionValues expected = AttentionReference(
          desc, Numbers(static_cast<size_t>(JointSize(desc))));
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
  AttentionDesc desc = DescribeAttention(DType::kBF16, true);
  const Ran with = Run(desc);
  desc.lse = -1;
  const Ran without = Run(desc);
  ASSERT_FALSE(without.by_launch);
  EXPECT_EQ(with.results.out, without.results.out);
}

// Engine 3 is the recorded library's fastest one that keeps the numbers.
TEST_F(AttentionTest, TheFasterOneIsTakenAndKept) {
  const AttentionDesc desc = DescribeAttention(DType::kBF16, true);
  EXPECT_THAT(Run(desc).log,
              AllOf(HasSubstr("engine 3\n"), Not(HasSubstr("attend"))));
  EXPECT_THAT(File(), AllOf(HasSubstr("mode3-engine3-0 "),
                            HasSubstr(" attention bf16 2 heads 4/2 positions "
                                      "5,7 sizes 8,8 causal 2 lse q ")));
  // Several ranks do not measure: they launch, whatever was kept, and do not
  // open the library.
  options_.measures = false;
  recording_.SetLaunchTime(kFast);
  const Ran unmeasured = Run(desc);
  EXPECT_TRUE(unmeasured.by_launch);
  EXPECT_THAT(unmeasured.prepared, Not(HasSubstr("cudnn")));
  // The kept plan needs no measurement.
  options_.measures = true;
  EXPECT_FALSE(Run(desc).by_launch);
  std::filesystem::remove(options_.tuned);
  EXPECT_TRUE(Run(desc).by_launch);
  EXPECT_THAT(File(), HasSubstr("launch "));
  // A kept launch costs no time of the library.
  recording_.SetLaunchTime(kSlow);
  const Ran launched = Run(desc);
  EXPECT_TRUE(launched.by_launch);
  EXPECT_THAT(launched.prepared, Not(HasSubstr("cudnnBackend")));
}

// A plan takes 30 ms, so the first attentions take the time of all.
TEST_F(AttentionTest, PreparingPlansEndsWithTheTimeForTuning) {
  recording_.Delay(recording::kFinalizePlan, 30);
  options_.tuning_time = std::chrono::milliseconds(200);
  const auto device = std::move(MakeCudaDevice(options_)).value();
  const auto module = std::move(device->LoadModule(kAttendPtx)).value();
  AttentionDesc desc = DescribeAttention(DType::kBF16, true);
  size_t plans = 0;
  std::string log;
  for (desc.batch = 1; desc.batch <= 12; ++desc.batch) {
    recording_.TakeLog();
    ASSERT_TRUE(Prepare(*device, *module, desc).ok());
    log = recording_.TakeLog();
    // Half of the time that is left is for measurements.
    EXPECT_LE(PlansIn(log), 4u);
    plans += PlansIn(log);
  }
  EXPECT_GE(plans, 1u);
  EXPECT_LE(plans, 8u);
  EXPECT_THAT(log, Not(HasSubstr("cudnnBackend")));
  recording_.Delay(recording::kFinalizePlan, 0);
}

TEST_F(AttentionTest, KeptPlansArePreparedAlone) {
  const AttentionDesc desc = DescribeAttention(DType::kBF16, true);
  options_.tuning_time = std::chrono::milliseconds(0);
  EXPECT_TRUE(Run(desc).by_launch);
  EXPECT_EQ(File(), "");
  options_.tuning_time = std::chrono::minutes(1);
  EXPECT_EQ(PlansIn(Run(desc).prepared), 5u);
  // Without time for tuning, too.
  options_.tuning_time = std::chrono::milliseconds(0);
  const Ran ran = Run(desc);
  EXPECT_EQ(PlansIn(ran.prepared), 1u);
  EXPECT_THAT(ran.log, HasSubstr("engine 3\n"));
}

TEST_F(AttentionTest, AKeptPlanThatTheLibraryHasNotIsMeasuredAnew) {
  const AttentionDesc desc = DescribeAttention(DType::kBF16, true);
  EXPECT_FALSE(Run(desc).by_launch);
  std::string kept = File();
  const size_t at = kept.find("mode3-engine3-0");
  ASSERT_NE(at, std::string::npos);
  std::ofstream(options_.tuned) << kept.replace(at, 15, "mode3-engine77-0");
  EXPECT_THAT(Run(desc).log, HasSubstr("engine 3\n"));
  EXPECT_THAT(File(), HasSubstr("mode3-engine3-0 "));
}

TEST_F(AttentionTest, TestsAndBenchmarksChoose) {
  const AttentionDesc desc = DescribeAttention(DType::kBF16, true);
  options_.attention = AttentionBy::kLaunch;
  EXPECT_TRUE(Run(desc).by_launch);
  EXPECT_EQ(File(), "");
  // The library's fastest plan, although the launch is faster. The choice among
  // plans does not replace the choice of the other runs.
  recording_.SetLaunchTime(kFast);
  options_.attention = AttentionBy::kDnn;
  EXPECT_THAT(Run(desc).log, HasSubstr("engine 3\n"));
  EXPECT_THAT(File(),
              AllOf(StartsWith("mode3-engine3-0 "), EndsWith(" alone\n")));
  options_.attention = AttentionBy::kFaster;
  EXPECT_TRUE(Run(desc).by_launch);
  EXPECT_THAT(File(), HasSubstr("\nlaunch "));
  for (const char* word : {"launch", "cudnn", "cuDNN"}) {
    SCOPED_TRACE(word);
    setenv("PARTITA_CUDA_ATTENTION", word, /*overwrite=*/1);
    if (word == std::string("cuDNN")) {
      EXPECT_EQ(MakeCudaDevice(options_).status().message(),
                "PARTITA_CUDA_ATTENTION: expected 'launch' or 'cudnn', found "
                "'cuDNN'");
    } else {
      EXPECT_EQ(Run(desc).by_launch, word == std::string("launch"));
    }
    unsetenv("PARTITA_CUDA_ATTENTION");
  }
}

TEST_F(AttentionTest, WhatTheLibraryDoesNotDoIsLaunched) {
  const AttentionDesc desc = DescribeAttention(DType::kF16, true);
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
  const AttentionDesc desc = DescribeAttention(DType::kF16, false);
  const Ran ran = Run(desc, /*shift=*/2);
  ASSERT_FALSE(ran.by_launch);
  EXPECT_THAT(ran.log, AllOf(HasSubstr("cuLaunchKernel attend"),
                             Not(HasSubstr("engine"))));
  EXPECT_EQ(ran.first, kMark);
}

}  // namespace
}  // namespace partita::cuda
