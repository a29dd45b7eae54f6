// Tests which driver calls the device makes, and how it reports driver errors.
// tests/conformance tests its results.
#include "runtime/cuda/cuda_device.h"

#include <stdlib.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/cuda/cuda_device_testing.h"
#include "runtime/cuda/recording/recording.h"
#include "runtime/program/code_bundle.h"

namespace partita::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kPtx[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry nothing(.param .u64 a, .param .u64 b) { ret; }\n";

void Nothing(void**, const recording::Place&) {}

std::string Message(const absl::Status& status) {
  return std::string(status.message());
}

class CudaDeviceTest : public RecordedDeviceTest {
 protected:
  CudaDeviceTest() { recording_.Register("nothing", &Nothing); }

  absl::Status LaunchNothing(const device::LaunchShape& shape, int count = 2) {
    if (module_ == nullptr)
      module_ = std::move(device_->LoadModule(kPtx)).value();
    recording_.TakeLog();
    void* buffers[] = {nullptr, nullptr, nullptr};
    const absl::Status status = device_->Launch(
        *stream_, *module_->Find("nothing").value(), shape, buffers, count);
    return status;
  }
  static device::LaunchShape Shape(std::array<int, 3> grid,
                                   std::array<int, 3> block, int shared) {
    device::LaunchShape shape;
    shape.grid = grid;
    shape.block = block;
    shape.shared_bytes = shared;
    return shape;
  }

  std::unique_ptr<device::Module> module_;
};

TEST(MakeCudaDeviceTest, WithoutADriverItSaysWhatToDo) {
  const auto device = MakeCudaDevice({0, "libno_such_driver.so", ""});
  EXPECT_TRUE(absl::IsFailedPrecondition(device.status()));
  EXPECT_THAT(Message(device.status()),
              AllOf(HasSubstr("the driver of NVIDIA GPUs cannot be loaded"),
                    HasSubstr("libno_such_driver.so"),
                    HasSubstr("install NVIDIA's driver, or compile and run the "
                              "model for the CPU (--target cpu)")));
}

TEST(MakeCudaDeviceTest, LibrariesThatAreNoDriverAreRefused) {
  const auto device = MakeCudaDevice({0, "libm.so.6", ""});
  EXPECT_TRUE(absl::IsFailedPrecondition(device.status()));
  EXPECT_THAT(Message(device.status()),
              HasSubstr("libm.so.6 has no function cuInit"));
}

TEST(MakeCudaDeviceTest, GpusThatAreNotThereAreRefused) {
  const auto device = MakeCudaDevice({2, kRecordingLibrary, ""});
  EXPECT_TRUE(absl::IsFailedPrecondition(device.status()));
  EXPECT_THAT(Message(device.status()),
              HasSubstr("expected a GPU number 2, found 2 GPUs; look at "
                        "nvidia-smi"));
}

TEST_F(CudaDeviceTest, LaunchesHaveTheirGeometry) {
  ASSERT_TRUE(LaunchNothing(Shape({2, 3, 4}, {5, 6, 7}, 8)).ok());
  EXPECT_EQ(recording_.TakeLog(),
            "cuModuleGetFunction nothing\n"
            "cuFuncLoad nothing\n"
            "cuLaunchKernel nothing <2,3,4> <5,6,7> 8\n");
  // Shared memory above the default limit is requested once.
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(LaunchNothing(Shape({1, 1, 1}, {32, 1, 1}, 100000)).ok());
    EXPECT_EQ(recording_.TakeLog(),
              std::string(i == 0 ? "cuFuncSetAttribute 100000\n" : "") +
                  "cuLaunchKernel nothing <1,1,1> <32,1,1> 100000\n");
  }
}

TEST_F(CudaDeviceTest, ImpossibleLaunchesAreRefused) {
  EXPECT_THAT(Message(LaunchNothing({100, 1, 0})),
              HasSubstr("kernel nothing: expected a grid and a block of "
                        "threads, found none; compile the model again"));
  EXPECT_THAT(
      Message(LaunchNothing(Shape({1, 1, 1}, {1024, 2, 1}, 0))),
      HasSubstr("expected at most 1024 threads in a block, found 2048"));
  EXPECT_THAT(Message(LaunchNothing(Shape({1, 1, 1}, {1, 1, 1}, 1 << 20))),
              HasSubstr("it needs 1048576 bytes of shared memory, this GPU has "
                        "232448 for a block"));
  EXPECT_THAT(Message(LaunchNothing(Shape({1, 1, 1}, {1, 1, 1}, 0), 3)),
              HasSubstr("it takes 2 parameters, found 3"));
  EXPECT_THAT(recording_.TakeLog(), Not(HasSubstr("cuLaunchKernel")));
}

// The last kernel parameter is the launch's scratch.
TEST_F(CudaDeviceTest, LaunchesHaveScratch) {
  device::LaunchShape shape = Shape({1, 1, 1}, {1, 1, 1}, 0);
  shape.scratch_bytes = 5000;
  EXPECT_TRUE(absl::IsInternal(LaunchNothing(shape, 1)));
  ASSERT_TRUE(device_->ReserveLaunchScratch(5000).ok());
  EXPECT_EQ(device_->Memory().scratch, 5000);
  EXPECT_THAT(recording_.TakeLog(), HasSubstr("cuMemAlloc_v2 5000\n"));
  EXPECT_TRUE(LaunchNothing(shape, 1).ok());
  EXPECT_THAT(Message(LaunchNothing(shape, 2)),
              HasSubstr("it takes 2 parameters, found 3"));
  ASSERT_TRUE(device_->Synchronize(*stream_).ok());
}

TEST_F(CudaDeviceTest, ErrorsHaveNameCallAndAdvice) {
  recording_.FailNext("cuMemAlloc_v2", kCuOutOfMemory);
  const absl::Status full = device_->Allocate(4096).status();
  EXPECT_TRUE(absl::IsResourceExhausted(full));
  EXPECT_THAT(
      Message(full),
      AllOf(HasSubstr("allocating 4096 bytes on a GPU with 1073741824 of "
                      "1073741824 bytes free: CUDA_ERROR_OUT_OF_MEMORY (2"),
            HasSubstr("divide the model over more devices")));
  recording_.FailNext("cuStreamSynchronize", kCuIllegalAddress);
  EXPECT_THAT(Message(device_->Synchronize(*stream_)),
              AllOf(HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"),
                    HasSubstr("CUDA_LAUNCH_BLOCKING=1")));
  recording_.FailNext("cuLaunchKernel", kCuLaunchOutOfResources);
  EXPECT_THAT(Message(LaunchNothing(Shape({1, 1, 1}, {1, 1, 1}, 0))),
              HasSubstr("launching kernel nothing: an unknown error (701"));
}

TEST_F(CudaDeviceTest, TheCompilersWordsAreTold) {
  const absl::Status bad = device_->LoadModule("mov r1, r2;").status();
  EXPECT_TRUE(absl::IsInvalidArgument(bad));
  EXPECT_THAT(Message(bad),
              AllOf(HasSubstr("loading the model's kernels: "
                              "CUDA_ERROR_INVALID_PTX"),
                    HasSubstr("the compiler says: ptxas fatal : Missing "
                              ".version or .target directive")));
  EXPECT_THAT(
      Message(device_
                  ->LoadModule(".version 8.6\n.target sm_100\n.visible "
                               ".entry k() { ret; }")
                  .status()),
      AllOf(HasSubstr("CUDA_ERROR_NO_BINARY_FOR_GPU"),
            HasSubstr("compile the model for this one (--target cuda:sm_XX)")));
}

// The recorded GPU is an sm_90.
TEST_F(CudaDeviceTest, MachineCodeOfTheGpuIsLoadedBeforePtx) {
  const std::string cubin = std::string(recording::kCubinMagic) + kPtx;
  const auto log_of = [&](const program::CodeBundle& bundle) {
    recording_.TakeLog();
    const auto module = device_->LoadModule(program::WriteCodeBundle(bundle));
    EXPECT_TRUE(module.ok()) << module.status();
    return recording_.TakeLog();
  };
  constexpr char kCubin[] = "cuModuleLoadDataEx cubin\n",
                 kText[] = "cuModuleLoadDataEx\n";
  // The PTX is not even looked at.
  EXPECT_THAT(log_of({"no PTX", {{"sm_80", "x"}, {"sm_90", cubin}}}),
              AllOf(HasSubstr(kCubin), Not(HasSubstr(kText))));
  // Machine code of other GPUs is left alone.
  EXPECT_THAT(log_of({kPtx, {{"sm_80", cubin}, {"sm_100", cubin}}}),
              AllOf(HasSubstr(kText), Not(HasSubstr(kCubin))));
  // Where the driver refuses it, less specific code and then PTX are loaded.
  const std::string refused = std::string(recording::kCubinMagic) + "newer";
  EXPECT_THAT(
      log_of({kPtx, {{"sm_90", cubin}, {"sm_90a", refused}}}),
      AllOf(HasSubstr(std::string(kCubin) + kCubin), Not(HasSubstr(kText))));
  EXPECT_THAT(log_of({kPtx, {{"sm_90", refused}}}),
              HasSubstr(std::string(kCubin) + kText));
}

TEST_F(CudaDeviceTest, LongCopiesAreStagedInPieces) {
  std::vector<char> values(10 << 20), back(values.size());
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<char>(i * 7 + (i >> 20));
  const int64_t bytes = static_cast<int64_t>(values.size());
  const auto memory =
      std::move(device::Allocation::Make(*device_, bytes)).value();
  ASSERT_TRUE(
      device_->CopyToDevice(*stream_, memory.data(), values.data(), bytes)
          .ok());
  const std::vector<char> kept = values;
  // CopyToDevice has read the host memory already.
  values.assign(values.size(), 0);
  ASSERT_TRUE(
      device_->CopyToHost(*stream_, back.data(), memory.data(), bytes).ok());
  EXPECT_TRUE(back == kept);
  const std::string log = recording_.TakeLog();
  EXPECT_THAT(log, HasSubstr("cuMemcpyHtoDAsync_v2 4194304\n"));
  EXPECT_THAT(log, HasSubstr("cuMemcpyDtoHAsync_v2 2097152\n"));
}

TEST_F(CudaDeviceTest, TheHostsMemoryIsPinnedAndNotTheGpus) {
  const size_t before = recording_.UsedBytes();
  {
    const auto memory = std::move(device::Allocation::Make(*device_, 5000,
                                                           /*host=*/true))
                            .value();
    EXPECT_EQ(recording_.UsedBytes(), before);
    EXPECT_EQ(device_->Memory().allocated, 0);
  }
  EXPECT_THAT(recording_.TakeLog(), AllOf(HasSubstr("cuMemAllocHost_v2 5000\n"),
                                          HasSubstr("cuMemFreeHost")));
}

// The recording driver reports accesses that nothing orders.
TEST_F(CudaDeviceTest, WhatNothingOrdersIsFound) {
  recording_.Watch();
  const auto other = std::move(device_->CreateStream()).value();
  const auto event = std::move(device_->CreateEvent()).value();
  const auto memory =
      std::move(device::Allocation::Make(*device_, 192)).value();
  char* const at = memory.data();
  const auto copy = [&](device::Stream& stream, int64_t to, int64_t from) {
    EXPECT_TRUE(device_->Copy(stream, at + to, at + from, 64).ok());
  };
  const auto join = [&](device::Stream& from, device::Stream& to) {
    EXPECT_TRUE(device_->Record(from, *event).ok());
    EXPECT_TRUE(device_->Wait(to, *event).ok());
  };
  constexpr char kWriteRead[] =
      "cuMemcpyDtoDAsync_v2 reads what cuMemcpyDtoDAsync_v2 writes\n";
  constexpr char kReadWrite[] =
      "cuMemcpyDtoDAsync_v2 writes what cuMemcpyDtoDAsync_v2 reads\n";
  // Two concurrent reads are no race.
  copy(*stream_, 64, 0);
  copy(*other, 128, 0);
  EXPECT_EQ(recording_.TakeRaces(), "");
  // A write and a read race in any execution order.
  copy(*stream_, 0, 64);
  copy(*other, 128, 0);
  EXPECT_THAT(recording_.TakeRaces(),
              ::testing::AnyOf(HasSubstr(kWriteRead), HasSubstr(kReadWrite)));
  // Overlap in the last byte counts.
  ASSERT_TRUE(device_->Synchronize(*stream_).ok());
  ASSERT_TRUE(device_->Synchronize(*other).ok());
  copy(*stream_, 0, 64);
  EXPECT_TRUE(device_->Copy(*other, at + 128, at + 63, 1).ok());
  EXPECT_NE(recording_.TakeRaces(), "");
  ASSERT_TRUE(device_->Synchronize(*stream_).ok());
  ASSERT_TRUE(device_->Synchronize(*other).ok());
  // An event orders operations, and so does a wait of the host.
  copy(*stream_, 0, 64);
  join(*stream_, *other);
  copy(*other, 128, 0);
  ASSERT_TRUE(device_->Synchronize(*other).ok());
  copy(*stream_, 0, 64);
  EXPECT_EQ(recording_.TakeRaces(), "");
  // An event recorded too early does not.
  EXPECT_TRUE(device_->Record(*stream_, *event).ok());
  copy(*stream_, 0, 64);
  EXPECT_TRUE(device_->Wait(*other, *event).ok());
  copy(*other, 128, 0);
  EXPECT_NE(recording_.TakeRaces(), "");
  ASSERT_TRUE(device_->Synchronize(*stream_).ok());
  ASSERT_TRUE(device_->Synchronize(*other).ok());
  // A later read does not stand for a write.
  copy(*stream_, 0, 64);
  copy(*stream_, 128, 0);
  copy(*other, 64, 0);
  EXPECT_THAT(recording_.TakeRaces(), HasSubstr(kWriteRead));
}

TEST(CudaBlockingTest, EveryOperationIsWaitedForOnDemand) {
  setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
  const recording::Recording recording(kRecordingLibrary);
  const auto device =
      std::move(MakeCudaDevice({0, kRecordingLibrary, "none"})).value();
  unsetenv("CUDA_LAUNCH_BLOCKING");
  const auto stream = std::move(device->CreateStream()).value();
  const auto memory = std::move(device::Allocation::Make(*device, 64)).value();
  recording.FailNext("cuStreamSynchronize", kCuIllegalAddress);
  EXPECT_THAT(
      Message(device->Copy(*stream, memory.data(), memory.data() + 32, 32)),
      HasSubstr("waiting for this operation: CUDA_ERROR_ILLEGAL_ADDRESS"));
}

}  // namespace
}  // namespace partita::cuda
