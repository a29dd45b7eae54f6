// Ranks with a GPU each that exchange through NCCL.
#ifndef PARTITA_RUNTIME_CUDA_NCCL_H_
#define PARTITA_RUNTIME_CUDA_NCCL_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/device_communicator.h"

namespace partita::cuda {

struct NcclOptions {
  int ordinal = 0;  // of this rank's GPU, among those that the driver shows
  // Libraries to open; empty: those that are installed.
  std::string driver;
  std::string nccl;
  comm::CommOptions comm;
};

// This rank's end. `base`, over which groups find each other and ranks learn of
// failures, must outlive it. FailedPrecondition, with what to do, where NCCL is
// not installed. All ranks must agree on having it.
absl::StatusOr<std::unique_ptr<comm::DeviceCommunicator>> MakeNcclCommunicator(
    comm::Communicator& base, const NcclOptions& options);

// The same where all ranks call it. Null, on all of them, where NCCL is not
// installed for some; any other error of a rank is everybody's.
absl::StatusOr<std::unique_ptr<comm::DeviceCommunicator>> AgreeOnNccl(
    comm::Communicator& base, const NcclOptions& options);

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_NCCL_H_
