// Tests the choice among cuDNN's engines, the fallback to our own kernel, and
// errors, on a recorded library.
#include <stdlib.h>

#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/recording/recording.h"

namespace partita::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kLibrary[] = "runtime/cuda/recording/librecording.so";

std::string Message(const absl::Status& status) {
  return std::string(status.message());
}

// Engines of the recorded library: 0 sums in a nondeterministic order, 1 cannot
// be prepared, 2 needs no workspace, 3 uses tensor cores (TF32 for f32), 5
// rounds its inputs, 6 needs too much workspace.
class ConvTest : public ::testing::Test {
 protected:
  ConvTest() : recording_(kLibrary) {
    folder_ = ::testing::TempDir() + "/conv_XXXXXX";
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    options_ = {0, kLibrary, "none", kLibrary};
    options_.tuned = folder_ + "/model.algorithms";
    options_.measures = true;
  }
  ~ConvTest() override {
    std::filesystem::remove_all(folder_);
    EXPECT_EQ(recording_.UsedBytes(), 0u);
  }
  static device::ConvDesc Describe(base::DType dtype) {
    device::ConvDesc desc;
    desc.dtype = dtype;
    desc.input_shape = {1, 5, 5, 4};
    desc.weight_shape = {2, 4, 3, 3};
    desc.out_shape = {1, 3, 3, 2};
    desc.channels_last = true;
    desc.strides = {2, 2};
    desc.dilations = desc.low = {1, 1};
    desc.high = {1, 1};
    return desc;
  }
  // Runs a convolution on a new device. The returned log names the engine.
  std::string Engine(base::DType dtype, const std::string& description) {
    const auto device = std::move(MakeCudaDevice(options_)).value();
    const auto stream = std::move(device->CreateStream()).value();
    const auto op =
        device->PrepareConv(Describe(dtype), std::vector<const void*>(3));
    EXPECT_TRUE(op.ok()) << op.status();
    EXPECT_EQ((*op)->Description(), description);
    const auto memory =
        std::move(device::Allocation::Make(*device, 3072)).value();
    void* buffers[] = {memory.data() + offset_, memory.data() + 1024,
                       memory.data() + 2048};
    recording_.TakeLog();
    EXPECT_TRUE(device->Execute(*stream, **op, buffers, 3).ok());
    EXPECT_TRUE(device->Synchronize(*stream).ok());
    return recording_.TakeLog();
  }

  recording::Recording recording_;
  std::string folder_;
  CudaOptions options_;
  int64_t offset_ = 0;  // of the input in its memory, in bytes
};

TEST_F(ConvTest, TheFastestEngineThatKeepsTheNumbersIsTaken) {
  EXPECT_THAT(Engine(base::DType::kF32, "cuDNN"), HasSubstr("engine 4\n"));
  EXPECT_THAT(Engine(base::DType::kBF16, "cuDNN"), HasSubstr("engine 3\n"));
  options_.measures = false;
  EXPECT_THAT(Engine(base::DType::kF32, "cuDNN"), HasSubstr("engine 4\n"));
  EXPECT_THAT(Engine(base::DType::kF16, "cuDNN"), HasSubstr("engine 2\n"));
}

TEST_F(ConvTest, WhereTheLibraryCannotOurKernelDoesIt) {
  offset_ = 4;
  EXPECT_THAT(
      Engine(base::DType::kF32, "cuDNN"),
      AllOf(HasSubstr("partita_conv_forward"), Not(HasSubstr("engine"))));
  options_.dnn = "none";
  EXPECT_THAT(Engine(base::DType::kF32, "own kernel"),
              HasSubstr("partita_conv_forward"));
  options_.dnn = folder_ + "/no_cudnn.so";
  const auto device = std::move(MakeCudaDevice(options_)).value();
  device::ConvDesc desc;
  const absl::Status status =
      device->PrepareConv(desc, std::vector<const void*>(3)).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(Message(status), HasSubstr("cuDNN cannot be loaded: expected"));
}

// Operations that the library does not support fall back to our own kernel;
// failures of the library do not.
class ConvErrorTest : public ConvTest {
 protected:
  ConvErrorTest() { options_.measures = false; }
  ~ConvErrorTest() override {
    for (const char* call : kCalls) Fail(call, 0, 0);
  }
  // Makes the next `times` calls of this name return the status.
  void Fail(const char* call, int status, int times = 1 << 20) {
    recording_.FailNext(call, static_cast<CuResult>(status), times);
  }
  void ExpectError(int code, const std::string& doing) {
    const auto device = std::move(MakeCudaDevice(options_)).value();
    const absl::Status status = device
                                    ->PrepareConv(Describe(base::DType::kF16),
                                                  std::vector<const void*>(3))
                                    .status();
    EXPECT_TRUE(absl::IsInternal(status)) << status;
    EXPECT_THAT(Message(status),
                HasSubstr(doing + ": cuDNN says CUDNN_STATUS_RECORDED (" +
                          std::to_string(code) + ")"));
  }
  static constexpr const char* kCalls[] = {
      "cudnnBackendFinalize", recording::kFinalizeHeuristics,
      recording::kGetHeuristicsResults, recording::kFinalizePlan,
      recording::kGetPlanWorkspace};
  static constexpr const char* kDoing[] = {
      "describing a tensor", "looking for an algorithm",
      "asking for attribute 202", "preparing an algorithm",
      "asking for attribute 402"};
};

TEST_F(ConvErrorTest, WhatTheLibraryDoesNotDoIsOursToDo) {
  for (const char* call : kCalls) {
    for (const int refusal : {2008, 3000, 3007, 3010}) {
      Fail(call, refusal);
      Engine(base::DType::kF16, "own kernel");
    }
    Fail(call, 0, 0);
  }
}

TEST_F(ConvErrorTest, WhatGoesWrongIsNotHidden) {
  for (size_t i = 0; i < std::size(kCalls); ++i) {
    SCOPED_TRACE(kCalls[i]);
    // 3005, 3006, 3008 and 3009 mean a broken installation.
    for (const int error : {1008, 3005, 3006, 3008, 3009, 4004, 5001}) {
      Fail(kCalls[i], error);
      ExpectError(error, kDoing[i]);
    }
    Fail(kCalls[i], 0, 0);
  }
}

// Engine 1 can never be prepared.
TEST_F(ConvErrorTest, WhereAnotherEngineCanBePreparedItIsTaken) {
  for (const int error : {3000, 5001}) {
    Fail(recording::kFinalizePlan, error, 2);
    EXPECT_THAT(Engine(base::DType::kF16, "cuDNN"), HasSubstr("engine 3\n"));
    Fail(recording::kGetPlanWorkspace, error, 1);
    EXPECT_THAT(Engine(base::DType::kF16, "cuDNN"), HasSubstr("engine 3\n"));
  }
  // The fallback mode has the same engines.
  for (const char* call :
       {recording::kFinalizeHeuristics, recording::kGetHeuristicsResults}) {
    Fail(call, 5001, 1);
    EXPECT_THAT(Engine(base::DType::kF16, "cuDNN"), HasSubstr("engine 2\n"));
  }
}

// The first of the four acceptable engines fails and the library refuses the
// others.
TEST_F(ConvErrorTest, AnErrorIsNotHiddenByRefusals) {
  Fail(recording::kGetPlanWorkspace, 3000);
  Fail(recording::kFinalizePlan, 5001, 1);
  ExpectError(5001, "preparing an algorithm");
}

}  // namespace
}  // namespace partita::cuda
