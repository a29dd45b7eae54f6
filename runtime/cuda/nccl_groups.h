// NCCL groups that one rank is a member of, and waiting for them with a
// timeout.
#ifndef PARTITA_RUNTIME_CUDA_NCCL_GROUPS_H_
#define PARTITA_RUNTIME_CUDA_NCCL_GROUPS_H_

#include <chrono>
#include <functional>
#include <future>
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

// All NCCL calls are nonblocking; Settle waits for them.
class NcclGroups {
 public:
  // Groups find each other over `base`, which must outlive this object.
  NcclGroups(comm::Communicator& base, std::shared_ptr<const NcclLibrary> nccl,
             std::chrono::milliseconds timeout)
      : base_(base), nccl_(std::move(nccl)), timeout_(timeout) {}
  NcclGroups(const NcclGroups&) = delete;
  ~NcclGroups();

  // The use of a group. Operations of one lane are unordered with respect to
  // operations of another lane of the same ranks.
  enum class Lane { kInPlace, kBeside, kTransfers };
  // Returns the group of these ranks, of which this rank is member `index`.
  // Null for a single rank. All members call it. If `joined` is not null, it is
  // set to whether the group existed before.
  absl::StatusOr<NcclComm> Join(const std::vector<int>& ranks, int index,
                                Lane lane, bool* joined = nullptr);

  // Waits until a call that returned `result` has put its work on the stream.
  // An error, naming the call by `doing`, if a rank fails or the timeout
  // passes.
  absl::Status Settle(NcclComm comm, NcclResult result,
                      const std::function<std::string()>& doing);

  // Returns an error that NCCL has detected asynchronously.
  absl::Status Check();

  // Begins to abort all groups and their work on the GPU. Returns `status`, or
  // a better-known cause: the rank that failed or did not arrive. The caller
  // then destroys its graphs of collectives: NCCL waits for that.
  absl::Status GiveUp(const absl::Status& status);

 private:
  // Aborts all groups at once, each on its own thread: their work may wait for
  // one another.
  void Abort();

  comm::Communicator& base_;
  const std::shared_ptr<const NcclLibrary> nccl_;
  const std::chrono::milliseconds timeout_;
  std::map<std::pair<Lane, std::vector<int>>, NcclComm> groups_;
  std::future<void> aborted_;  // valid: Abort was called
};

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_NCCL_GROUPS_H_
