// Shared by the conformance tests of devices: the devices, device memory, and
// slow reference loops.
#ifndef PARTITA_TESTS_CONFORMANCE_DEVICE_FIXTURE_H_
#define PARTITA_TESTS_CONFORMANCE_DEVICE_FIXTURE_H_

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/device/device.h"

namespace partita::conformance {

// A device under test. `threads` applies only to devices with threads.
struct DeviceUnderTest {
  std::string name;
  int threads = 1;
  bool executes = true;  // false: calls are accepted, but nothing is computed
  // For a GPU: the target of its code, and the libraries to open (empty: the
  // installed ones).
  std::string target;
  std::string driver;
  std::string blas;

  bool IsGpu() const { return !target.empty(); }
};

// Prints the device's name in test messages.
inline void PrintTo(const DeviceUnderTest& device, std::ostream* out) {
  *out << device.name;
}

// Every device that this machine can run: its GPUs, if any, and everywhere a
// recorded GPU, with the recorded libraries and without.
std::vector<DeviceUnderTest> AllDevices();
std::string DeviceName(const ::testing::TestParamInfo<DeviceUnderTest>& info);
std::unique_ptr<device::Device> MakeDevice(const DeviceUnderTest& device);

class DeviceTest : public ::testing::TestWithParam<DeviceUnderTest> {
 protected:
  DeviceTest();

  bool Executes() const { return GetParam().executes; }
  // The kernels of device_kernels.c or device_kernels.cu.
  static std::string KernelCode();
  // The launch shape for a range, with scratch memory; on a GPU, one thread per
  // element.
  device::LaunchShape Shape(int64_t range, int64_t grain = 1,
                            int64_t scratch_bytes = 0);
  device::Allocation Allocate(int64_t bytes);
  // Copies `bytes` of `data` to new device memory.
  device::Allocation Upload(const void* data, int64_t bytes);
  void Download(const device::Allocation& allocation, void* data);

  std::unique_ptr<device::Device> device_;
  std::unique_ptr<device::Stream> stream_;
};

// Deterministic values in [-1, 1).
std::vector<float> Values(int64_t count, uint64_t seed);

// Converts elements of `dtype` (f32, f16, bf16) to bytes, and back.
std::string Encode(base::DType dtype, const std::vector<float>& values);
std::vector<float> Decode(base::DType dtype, const std::string& bytes);

// Implements the definitions of program.fbs in double precision. `residual` and
// `bias` may be empty. Memory between the elements of `out` is not changed.
void ReferenceGemm(const device::GemmDesc& desc, const std::vector<float>& lhs,
                   const std::vector<float>& rhs,
                   const std::vector<float>& bias,
                   const std::vector<float>& residual, std::vector<float>& out);
void ReferenceConv(const device::ConvDesc& desc,
                   const std::vector<float>& first,
                   const std::vector<float>& second,
                   const std::vector<float>& bias,
                   const std::vector<float>& residual, std::vector<float>& out);

// Expects |found - expected| <= tolerance * (1 + |expected|) for every element.
void ExpectNear(const std::vector<float>& expected,
                const std::vector<float>& found, double tolerance);

}  // namespace partita::conformance

#endif  // PARTITA_TESTS_CONFORMANCE_DEVICE_FIXTURE_H_
