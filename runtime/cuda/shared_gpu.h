// Ranks that are threads of one process and stand on one GPU: they exchange by
// copies and sums in its memory.
#ifndef PARTITA_RUNTIME_CUDA_SHARED_GPU_H_
#define PARTITA_RUNTIME_CUDA_SHARED_GPU_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/device_communicator.h"

namespace partita::cuda {

struct SharedGpuOptions {
  int ordinal = 0;     // of the GPU, among those that the driver shows
  std::string driver;  // the library; empty: the one that is installed
  comm::CommOptions comm;
};

// What the ranks share; any thread may hold it.
class SharedGpu;
std::shared_ptr<SharedGpu> MakeSharedGpu(int ranks,
                                         const SharedGpuOptions& options);

// This rank's end, on its own thread. Hosts meet where ranks do (see
// DeviceCommunicator::MeetsOnHosts), so what they exchange is not captured.
// Sums are those of the host's communicators to the bit. `base`, which says
// whether a rank has failed, must outlive it.
absl::StatusOr<std::unique_ptr<comm::DeviceCommunicator>>
MakeSharedCommunicator(std::shared_ptr<SharedGpu> gpu,
                       comm::Communicator& base);

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_SHARED_GPU_H_
