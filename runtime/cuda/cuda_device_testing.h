// Test fixture with one recorded GPU.
#ifndef PARTITA_RUNTIME_CUDA_CUDA_DEVICE_TESTING_H_
#define PARTITA_RUNTIME_CUDA_CUDA_DEVICE_TESTING_H_

#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/recording/recording.h"

namespace partita::cuda {

inline constexpr char kRecordingLibrary[] =
    "runtime/cuda/recording/librecording.so";

class RecordedDeviceTest : public ::testing::Test {
 protected:
  RecordedDeviceTest() : recording_(kRecordingLibrary) {
    device_ =
        std::move(MakeCudaDevice({0, kRecordingLibrary, kRecordingLibrary}))
            .value();
    stream_ = std::move(device_->CreateStream()).value();
    recording_.TakeLog();
  }
  ~RecordedDeviceTest() override {
    stream_.reset();
    device_.reset();
    EXPECT_EQ(recording_.UsedBytes(), 0u);
  }

  recording::Recording recording_;
  std::unique_ptr<device::Device> device_;
  std::unique_ptr<device::Stream> stream_;
};

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_CUDA_DEVICE_TESTING_H_
