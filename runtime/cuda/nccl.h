// Communication through NCCL among ranks with a GPU each.
#ifndef PARTITA_RUNTIME_CUDA_NCCL_H_
#define PARTITA_RUNTIME_CUDA_NCCL_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/device_communicator.h"

namespace partita::cuda {

struct NcclOptions {
  int ordinal = 0;  // this rank's GPU, as the driver numbers them
  // Libraries to open. Empty: the installed ones.
  std::string driver;
  std::string nccl;
  comm::CommOptions comm;
};

// Makes this rank's communicator. Groups find each other and ranks learn of
// failures over `base`, which must outlive it. FailedPrecondition, with advice,
// if NCCL cannot be loaded. All ranks must agree on using NCCL.
absl::StatusOr<std::unique_ptr<comm::DeviceCommunicator>> MakeNcclCommunicator(
    comm::Communicator& base, const NcclOptions& options);

// The same, called by all ranks. Returns null on all ranks if NCCL is not
// installed for some rank. Any other error of a rank is returned by all.
absl::StatusOr<std::unique_ptr<comm::DeviceCommunicator>> AgreeOnNccl(
    comm::Communicator& base, const NcclOptions& options);

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_NCCL_H_
