// Checks whether code for a target such as "cuda:sm_90" runs on a GPU and
// driver.
#ifndef PARTITA_RUNTIME_CUDA_TARGET_H_
#define PARTITA_RUNTIME_CUDA_TARGET_H_

#include <string>

#include "absl/status/status.h"

namespace partita::cuda {

// A GPU and its driver.
struct Machine {
  std::string gpu;           // its name
  int major = 0, minor = 0;  // compute capability
  int driver_version = 0;    // 12040: CUDA 12.4
};

// FailedPrecondition, naming what is missing, if code for `target`
// ("cuda:sm_80", "cuda:sm_90a") cannot run on the machine. `features` is in
// LLVM's spelling; "+ptx80" is the PTX version. Code for sm_XY runs on all
// later GPUs; suffix "a" restricts it to that GPU, "f" to its family.
absl::Status CheckTarget(const Machine& machine, const std::string& target,
                         const std::string& features);

// True if machine code for an architecture, such as "sm_80" or "sm_90a", runs
// on the machine: GPUs of the same major version and at least its minor version
// run it, and with a suffix only those that CheckTarget accepts.
bool RunsMachineCode(const Machine& machine, const std::string& architecture);

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_TARGET_H_
