// What code for "cuda:sm_90" needs of a GPU and of its driver.
#ifndef PARTITA_RUNTIME_CUDA_TARGET_H_
#define PARTITA_RUNTIME_CUDA_TARGET_H_

#include <string>

#include "absl/status/status.h"

namespace partita::cuda {

// What a machine has.
struct Machine {
  std::string gpu;           // its name
  int major = 0, minor = 0;  // compute capability
  int driver_version = 0;    // 12040: CUDA 12.4
};

// FailedPrecondition, naming what is missing, if code for `target`
// ("cuda:sm_80", "cuda:sm_90a") with these features (LLVM's spelling: "+ptx80"
// is the version of the PTX) cannot run there. Code for sm_XY runs on all GPUs
// from that one on; the letter a means on that one alone, f on its family.
absl::Status CheckTarget(const Machine& machine, const std::string& target,
                         const std::string& features);

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_TARGET_H_
