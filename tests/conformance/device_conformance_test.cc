// Requirements for every device: memory, streams, events, copies, kernels.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/conformance/device_fixture.h"

namespace partita::conformance {
namespace {

using ::testing::HasSubstr;

class DeviceConformanceTest : public DeviceTest {};

TEST_P(DeviceConformanceTest, MemoryIsAlignedCountedAndGivenBack) {
  const int64_t before = device_->Memory().allocated;
  {
    const device::Allocation a = Allocate(1);
    const device::Allocation b = Allocate(1000);
    const device::Allocation empty = Allocate(0);
    EXPECT_NE(a.data(), b.data());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(a.data()) % 64, 0u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(b.data()) % 64, 0u);
    EXPECT_EQ(device_->Memory().allocated, before + 1001);
  }
  EXPECT_EQ(device_->Memory().allocated, before);
}

TEST_P(DeviceConformanceTest, ImpossibleSizesAreRefused) {
  EXPECT_FALSE(device_->Allocate(-1).ok());
  if (!Executes()) return;  // The null device plans models of any size.
  const absl::StatusOr<void*> memory = device_->Allocate(int64_t{1} << 60);
  ASSERT_FALSE(memory.ok());
  EXPECT_TRUE(absl::IsResourceExhausted(memory.status()));
  EXPECT_THAT(std::string(memory.status().message()),
              HasSubstr("1152921504606846976 bytes"));
}

TEST_P(DeviceConformanceTest, CopiesKeepContent) {
  const std::vector<float> values = Values(1001, 1);
  const int64_t bytes = static_cast<int64_t>(values.size() * sizeof(float));
  const device::Allocation a = Upload(values.data(), bytes);
  const device::Allocation b = Allocate(bytes);
  ASSERT_TRUE(device_->Copy(*stream_, b.data(), a.data(), bytes).ok());
  std::vector<float> back(values.size(), 0);
  Download(b, back.data());
  EXPECT_EQ(back, Executes() ? values : std::vector<float>(values.size(), 0));
}

TEST_P(DeviceConformanceTest, EventsOrderStreams) {
  std::unique_ptr<device::Stream> other =
      std::move(device_->CreateStream()).value();
  std::unique_ptr<device::Event> event =
      std::move(device_->CreateEvent()).value();
  const std::vector<float> values = Values(4096, 2);
  const int64_t bytes = static_cast<int64_t>(values.size() * sizeof(float));
  const device::Allocation a = Allocate(bytes);
  const device::Allocation b = Allocate(bytes);
  ASSERT_TRUE(
      device_->CopyToDevice(*stream_, a.data(), values.data(), bytes).ok());
  ASSERT_TRUE(device_->Record(*stream_, *event).ok());
  ASSERT_TRUE(device_->Wait(*other, *event).ok());
  ASSERT_TRUE(device_->Copy(*other, b.data(), a.data(), bytes).ok());
  ASSERT_TRUE(device_->Record(*other, *event).ok());
  ASSERT_TRUE(device_->Synchronize(*event).ok());
  std::vector<float> back(values.size(), 0);
  Download(b, back.data());
  if (Executes()) EXPECT_EQ(back, values);
}

TEST_P(DeviceConformanceTest, LaunchCoversTheWholeRangeOnce) {
  std::unique_ptr<device::Module> module =
      std::move(device_->LoadModule(KernelCode())).value();
  const device::Kernel* mark = module->Find("mark").value();
  for (const int64_t range : {0, 1, 2, 3, 7, 64, 1000}) {
    for (const int64_t grain : {1, 2, 100, 10000}) {
      const device::LaunchShape shape = Shape(range, grain, 4 * (range + 1));
      std::vector<float> out(static_cast<size_t>(range) + 1, 0);
      const device::Allocation buffer =
          Upload(out.data(), static_cast<int64_t>(out.size() * sizeof(float)));
      void* buffers[] = {buffer.data()};
      ASSERT_TRUE(device_->Launch(*stream_, *mark, shape, buffers, 1).ok());
      Download(buffer, out.data());
      std::vector<float> expected(out.size(), Executes() ? 1.0f : 0.0f);
      expected.back() = 0;
      EXPECT_EQ(out, expected) << "range " << range << ", grain " << grain;
    }
  }
}

TEST_P(DeviceConformanceTest, KernelsReadAndWriteTheirBuffers) {
  std::unique_ptr<device::Module> module =
      std::move(device_->LoadModule(KernelCode())).value();
  const device::Kernel* add = module->Find("add").value();
  const std::vector<float> a = Values(513, 3), b = Values(513, 4);
  const device::Allocation da = Upload(a.data(), 4 * 513),
                           db = Upload(b.data(), 4 * 513),
                           out = Allocate(4 * 513);
  void* buffers[] = {da.data(), db.data(), out.data()};
  ASSERT_TRUE(device_->Launch(*stream_, *add, Shape(513, 16), buffers, 3).ok());
  std::vector<float> found(513, 0);
  Download(out, found.data());
  if (!Executes()) return;
  for (size_t i = 0; i < found.size(); ++i)
    ASSERT_EQ(found[i], a[i] + b[i]) << i;
}

TEST_P(DeviceConformanceTest, KernelsReadAndWriteTheHostsMemory) {
  const int64_t before = device_->Memory().allocated;
  const std::vector<float> a = Values(1000, 3), b = Values(1000, 4);
  const int64_t bytes = 4000;
  {
    std::vector<device::Allocation> memory;
    for (int i = 0; i < 3; ++i)
      memory.push_back(
          std::move(device::Allocation::Make(*device_, bytes, /*host=*/true))
              .value());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory[1].data()) % 64, 0u);
    for (int i = 0; i < 2; ++i)
      ASSERT_TRUE(device_
                      ->CopyToDevice(*stream_, memory[i].data(),
                                     (i == 0 ? a : b).data(), bytes)
                      .ok());
    std::unique_ptr<device::Module> module =
        std::move(device_->LoadModule(KernelCode())).value();
    void* buffers[] = {memory[0].data(), memory[1].data(), memory[2].data()};
    ASSERT_TRUE(device_
                    ->Launch(*stream_, *module->Find("add").value(),
                             Shape(1000, 16), buffers, 3)
                    .ok());
    std::vector<float> found(1000);
    Download(memory[2], found.data());
    for (size_t i = 0; Executes() && i < 1000; ++i)
      ASSERT_EQ(found[i], a[i] + b[i]) << i;
  }
  EXPECT_EQ(device_->Memory().allocated, before);
  EXPECT_FALSE(device_->AllocateHost(-1).ok());
}

// Pieces of any size, split in any way.
TEST_P(DeviceConformanceTest, OneLaunchCoversEveryPiece) {
  std::unique_ptr<device::Module> module =
      std::move(device_->LoadModule(KernelCode())).value();
  const device::Kernel* add =
      module->Find(GetParam().IsGpu() ? "add_pieces" : "add").value();
  for (const std::vector<int64_t>& ranges :
       std::vector<std::vector<int64_t>>{{5, 300},
                                         {0, 1, 0},
                                         {100, 0, 7, 513, 1, 64},
                                         {3, 0},
                                         std::vector<int64_t>(128, 2)}) {
    device::LaunchPieces pieces = {ranges, 1};
    std::vector<std::vector<float>> a, b;
    std::vector<device::Allocation> inputs, outputs;
    int64_t range = 0;
    for (size_t i = 0; i < ranges.size(); ++i) {
      range += ranges[i];
      // one more element, which no piece may write
      const int64_t size = ranges[i] + 1;
      a.push_back(Values(size, static_cast<int>(i) + 3));
      b.push_back(Values(size, static_cast<int>(i) + 40));
      inputs.push_back(Upload(a.back().data(), 4 * size));
      inputs.push_back(Upload(b.back().data(), 4 * size));
      outputs.push_back(
          Upload(std::vector<float>(size, -1.0f).data(), 4 * size));
    }
    std::vector<void*> buffers;
    for (const device::Allocation& input : inputs)
      buffers.push_back(input.data());
    for (const device::Allocation& output : outputs)
      buffers.push_back(output.data());
    for (const int64_t grain : {1, 16, 100000}) {
      ASSERT_TRUE(device_
                      ->LaunchEach(*stream_, *add, Shape(range, grain), pieces,
                                   buffers.data(),
                                   static_cast<int>(buffers.size()))
                      .ok());
      for (size_t i = 0; Executes() && i < ranges.size(); ++i) {
        std::vector<float> found(a[i].size());
        Download(outputs[i], found.data());
        for (size_t j = 0; j + 1 < found.size(); ++j)
          ASSERT_EQ(found[j], a[i][j] + b[i][j]) << i << ", " << j;
        EXPECT_EQ(found.back(), -1.0f);
      }
    }
  }
}

// A GPU's kernels have few bytes of parameters.
TEST_P(DeviceConformanceTest, TooManyPiecesAreRefused) {
  if (!GetParam().IsGpu()) return;
  std::unique_ptr<device::Module> module =
      std::move(device_->LoadModule(KernelCode())).value();
  const device::Allocation memory = Allocate(24);
  const std::vector<void*> buffers(3 * 129, memory.data());
  EXPECT_THAT(
      std::string(
          device_
              ->LaunchEach(*stream_, *module->Find("add_pieces").value(),
                           Shape(129), {std::vector<int64_t>(129, 1), 1},
                           buffers.data(), 3 * 129)
              .message()),
      HasSubstr("fit 4096 bytes of parameters, found 129 with 387 buffers"));
}

TEST_P(DeviceConformanceTest, BadModulesAreRefused) {
  if (!Executes()) return;  // The null device loads nothing.
  EXPECT_FALSE(device_->LoadModule("no machine code").ok());
  EXPECT_FALSE(device_->LoadModule("").ok());
  const std::string code = KernelCode();
  EXPECT_FALSE(device_->LoadModule(code.substr(0, code.size() / 4)).ok());
  std::unique_ptr<device::Module> module =
      std::move(device_->LoadModule(code)).value();
  const absl::StatusOr<const device::Kernel*> kernel = module->Find("absent");
  ASSERT_FALSE(kernel.ok());
  EXPECT_TRUE(absl::IsNotFound(kernel.status()));
  EXPECT_THAT(std::string(kernel.status().message()), HasSubstr("'absent'"));
}

TEST_P(DeviceConformanceTest, ModulesOutliveOneAnother) {
  std::unique_ptr<device::Module> first =
      std::move(device_->LoadModule(KernelCode())).value();
  std::unique_ptr<device::Module> second =
      std::move(device_->LoadModule(KernelCode())).value();
  first.reset();
  std::unique_ptr<device::Module> third =
      std::move(device_->LoadModule(KernelCode())).value();
  for (device::Module* module : {second.get(), third.get()}) {
    const device::Kernel* add = module->Find("add").value();
    const std::vector<float> ones(8, 1.0f);
    const device::Allocation a = Upload(ones.data(), 32), out = Allocate(32);
    void* buffers[] = {a.data(), a.data(), out.data()};
    ASSERT_TRUE(device_->Launch(*stream_, *add, Shape(8), buffers, 3).ok());
    std::vector<float> found(8, 0.0f);
    Download(out, found.data());
    EXPECT_EQ(found, std::vector<float>(8, Executes() ? 2.0f : 0.0f));
  }
}

TEST_P(DeviceConformanceTest, ForeignTargetsAreRefused) {
  if (!Executes()) return;  // The null device plans for any target.
  const std::string own =
      GetParam().IsGpu() ? GetParam().target : GetParam().name;
  EXPECT_TRUE(device_->CheckTarget(own, "").ok());
  const absl::Status status = device_->CheckTarget("abacus", "");
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("'abacus'"));
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceConformanceTest,
                         ::testing::ValuesIn(AllDevices()), DeviceName);

}  // namespace
}  // namespace partita::conformance
