// Communication among ranks that are threads of one process and share one GPU,
// by copies and reductions in its memory.
#ifndef PARTITA_RUNTIME_CUDA_SHARED_GPU_H_
#define PARTITA_RUNTIME_CUDA_SHARED_GPU_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/device_communicator.h"

namespace partita::cuda {

struct SharedGpuOptions {
  int ordinal = 0;     // the GPU, as the driver numbers them
  std::string driver;  // library to open; empty: the installed one
  comm::CommOptions comm;
};

// State that the ranks share. Any thread may hold it.
class SharedGpu;
std::shared_ptr<SharedGpu> MakeSharedGpu(int ranks,
                                         const SharedGpuOptions& options);

// Makes this rank's communicator, on the rank's thread. Hosts meet in
// collectives (see DeviceCommunicator::MeetsOnHosts), so a step with
// collectives is not captured. Sums are bit-identical to the host
// communicators' sums. `base` reports failed ranks and must outlive it.
absl::StatusOr<std::unique_ptr<comm::DeviceCommunicator>>
MakeSharedCommunicator(std::shared_ptr<SharedGpu> gpu,
                       comm::Communicator& base);

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_SHARED_GPU_H_
