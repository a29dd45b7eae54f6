// GPUs for which libraries plan although none is present.
#ifndef PARTITA_TESTS_E2E_KNOWN_GPUS_H_
#define PARTITA_TESTS_E2E_KNOWN_GPUS_H_

#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

namespace partita::e2e {

inline constexpr size_t kFirstVersionThatPlans = 91100;  // of cuDNN: 9.11

// SXM cards with 80 GB.
struct Gpu {
  const char* name;
  int architecture, multiprocessors, shared_bytes;
  int64_t l2_bytes, clock_khz, memory_clock_khz;
};
inline constexpr Gpu kA100 = {"NVIDIA A100", 800,     108,    166912,
                              41943040,      1410000, 1593000};
inline constexpr Gpu kH100 = {"NVIDIA H100", 900,     132,    232448,
                              52428800,      1980000, 2619000};

// A GPU in cuDNN's JSON.
inline std::string JsonOf(const Gpu& gpu) {
  std::ostringstream json;
  json << R"({"deviceVer": )" << gpu.architecture
       << R"(, "driverVer": 13000, "deviceName": ")" << gpu.name
       << R"(", "cudaDeviceId": 0, "pciDeviceId": 0, "isTccDriver": 0,
  "multiProcessorCount": )"
       << gpu.multiprocessors << R"(, "warpSize": 32, "maxThreadsPerSM": 2048,
  "maxThreadsPerBlock": 1024, "maxCtasPerSM": 32, "maxRegistersPerSM": 65536,
  "regsPerBlock": 65536, "maxSharedMemoryPerBlock": 49152,
  "maxSharedMemoryPerBlockOptin": )"
       << gpu.shared_bytes << R"(, "reservedSharedMemoryPerBlock": 1024,
  "l2CacheSize": )"
       << gpu.l2_bytes << R"(, "maxBlockSize": [1024, 1024, 64],
  "maxGridSize": [2147483647, 65535, 65535], "totalGlobalMem": 84987740160,
  "smClockRateKHz": )"
       << gpu.clock_khz << R"(, "memClockRateKHz": )" << gpu.memory_clock_khz
       << R"(, "supportCoopLaunch": 1})";
  return json.str();
}

}  // namespace partita::e2e

#endif  // PARTITA_TESTS_E2E_KNOWN_GPUS_H_
