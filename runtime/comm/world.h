// The processes of a job, each of which is one rank.
#ifndef PARTITA_RUNTIME_COMM_WORLD_H_
#define PARTITA_RUNTIME_COMM_WORLD_H_

#include <chrono>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/launch.h"

namespace partita::comm {

// As long as this process runs. Its communicators must not outlive it.
class World {
 public:
  virtual ~World() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::unique_ptr<Communicator> MakeCommunicator(
      const CommOptions& options) = 0;

  // The orderly end of all ranks; each must call it, having received all
  // messages. Unavailable if some rank has not come within the time: then
  // abort.
  virtual absl::Status Finish(std::chrono::milliseconds timeout) = 0;
  // Ends this process at once with this exit code, and all others as soon as
  // they learn of it. Does not return.
  virtual void Abort(int exit_code) = 0;
};

// All ranks call it, and none waits longer than the timeout for another:
// connections of our own where the launch has an address to meet at
// (tcp_world.h), else MPI.
absl::StatusOr<std::unique_ptr<World>> StartWorld(const Launch& launch,
                                                  const CommOptions& options);

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_WORLD_H_
