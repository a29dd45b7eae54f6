// Groups of GPUs that one rank is a member of, and waiting for them, never
// without an end.
#ifndef PARTITA_RUNTIME_CUDA_NCCL_GROUPS_H_
#define PARTITA_RUNTIME_CUDA_NCCL_GROUPS_H_

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/comm/communicator.h"
#include "runtime/cuda/nccl_library.h"

namespace partita::cuda {

// The library's calls are all of the kind that does not wait for other ranks;
// Settle does.
class NcclGroups {
 public:
  // `base` outlives it; groups find each other over it.
  NcclGroups(comm::Communicator& base, std::shared_ptr<const NcclLibrary> nccl,
             std::chrono::milliseconds timeout)
      : base_(base), nccl_(std::move(nccl)), timeout_(timeout) {}
  NcclGroups(const NcclGroups&) = delete;
  ~NcclGroups();

  // What a group is for: operations of one stand in no order with those of
  // another of the same ranks.
  enum class Lane { kInPlace, kBeside, kTransfers };
  // The group of these ranks, of which this rank is member `index`; null for
  // one rank alone. All members call it. `joined`, where it is not null:
  // whether they were in it before.
  absl::StatusOr<NcclComm> Join(const std::vector<int>& ranks, int index,
                                Lane lane, bool* joined = nullptr);

  // Ends a call that returned `result`: what it puts on a stream is there when
  // this returns. An error if a rank fails or the timeout ends; `doing` names
  // the call then.
  absl::Status Settle(NcclComm comm, NcclResult result,
                      const std::function<std::string()>& doing);

  // What the library found out since.
  absl::Status Check();

  // Ends all that is under way on the GPU, and the groups with it. Returns
  // `status`, or what is known better: which rank has failed or does not come.
  absl::Status GiveUp(const absl::Status& status);

 private:
  comm::Communicator& base_;
  const std::shared_ptr<const NcclLibrary> nccl_;
  const std::chrono::milliseconds timeout_;
  std::map<std::pair<Lane, std::vector<int>>, NcclComm> groups_;
};

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_NCCL_GROUPS_H_
