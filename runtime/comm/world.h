// The processes of a job; each is one rank.
#ifndef PARTITA_RUNTIME_COMM_WORLD_H_
#define PARTITA_RUNTIME_COMM_WORLD_H_

#include <chrono>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/launch.h"

namespace partita::comm {

// Lives as long as this process. Its communicators must not outlive it.
class World {
 public:
  virtual ~World() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::unique_ptr<Communicator> MakeCommunicator(
      const CommOptions& options) = 0;

  // Ends all ranks in order; each must call it, after it has received all
  // messages. Unavailable if some rank does not call it within the timeout:
  // then call Abort.
  virtual absl::Status Finish(std::chrono::milliseconds timeout) = 0;
  // Ends this process at once with this exit code, and all others as soon as
  // they learn of it. Does not return.
  virtual void Abort(int exit_code) = 0;
};

// Collective over all ranks; none waits longer than the timeout for another.
// Connects by TCP if the launch has a rendezvous address (tcp_world.h), else by
// MPI.
absl::StatusOr<std::unique_ptr<World>> StartWorld(const Launch& launch,
                                                  const CommOptions& options);

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_WORLD_H_
