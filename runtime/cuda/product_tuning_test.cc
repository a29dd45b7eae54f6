// Tests that products take the algorithm measured as the fastest.
#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/cuda_device_testing.h"
#include "runtime/cuda/recording/recording.h"

namespace partita::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The second of the recorded library's three algorithms is the fastest.
class ProductTuningTest : public ::testing::Test {
 protected:
  ProductTuningTest() : recording_(kRecordingLibrary) {
    folder_ = ::testing::TempDir() + "/tuning_XXXXXX";
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    options_ = {0, kRecordingLibrary, kRecordingLibrary};
    options_.tuned = folder_ + "/model.algorithms";
    options_.measures = true;
  }
  ~ProductTuningTest() override {
    std::filesystem::remove_all(folder_);
    EXPECT_EQ(recording_.UsedBytes(), 0u);
  }

  // Runs a product of this size on a new device. Returns the log.
  std::string Log(int64_t size) {
    const auto device = std::move(MakeCudaDevice(options_)).value();
    const auto stream = std::move(device->CreateStream()).value();
    device::GemmDesc desc;
    desc.m = desc.n = desc.k = size;
    desc.lhs_strides = desc.rhs_strides = desc.out_strides = {0, size, 1};
    desc.has_bias = true;
    const auto memory =
        std::move(device::Allocation::Make(*device, 4096)).value();
    recording_.TakeLog();
    const auto op = device->PrepareGemm(desc, std::vector<const void*>(4));
    EXPECT_TRUE(op.ok()) << op.status();
    prepared_ = recording_.TakeLog();
    void* buffers[] = {memory.data(), memory.data() + 1024,
                       memory.data() + 2048, memory.data() + 3072};
    EXPECT_TRUE(device->Execute(*stream, **op, buffers, 4).ok());
    EXPECT_TRUE(device->Synchronize(*stream).ok());
    return recording_.TakeLog();
  }

  recording::Recording recording_;
  std::string folder_, prepared_;
  CudaOptions options_;
};

TEST_F(ProductTuningTest, TheFastestIsMeasuredOnceAndKept) {
  EXPECT_THAT(Log(16), HasSubstr("16x16x16 epilogue 4 algorithm 1\n"));
  EXPECT_THAT(prepared_,
              AllOf(HasSubstr("algorithm 0\n"), HasSubstr("algorithm 2\n"),
                    HasSubstr("cuEventElapsedTime")));
  EXPECT_THAT(Log(16), HasSubstr("algorithm 1\n"));
  EXPECT_THAT(prepared_, Not(HasSubstr("cuEventElapsedTime")));
  // Without measuring, the file still applies; other products get the first
  // algorithm.
  options_.measures = false;
  EXPECT_THAT(Log(16), HasSubstr("algorithm 1\n"));
  EXPECT_THAT(Log(8), HasSubstr("algorithm 0\n"));
  EXPECT_THAT(prepared_, Not(HasSubstr("cuEventElapsedTime")));
}

TEST_F(ProductTuningTest, AlgorithmsThatTheLibraryHasNotAreMeasuredAnew) {
  Log(16);
  std::string line;
  std::getline(std::ifstream(options_.tuned), line);
  std::ofstream(options_.tuned)
      << "no algorithm\n\nffff" << line.substr(line.find(' ')) << "\n";
  EXPECT_THAT(Log(16), HasSubstr("algorithm 1\n"));
  EXPECT_THAT(prepared_, HasSubstr("cuEventElapsedTime"));
}

TEST_F(ProductTuningTest, WhereMeasuringFailsTheFirstIsTaken) {
  options_.tuned = folder_ + "/no/such/folder";
  EXPECT_THAT(Log(16), HasSubstr("algorithm 1\n"));
  recording_.FailNext("cuEventElapsedTime", kCuLaunchFailed, 3);
  EXPECT_THAT(Log(16), HasSubstr("algorithm 0\n"));
}

}  // namespace
}  // namespace partita::cuda
