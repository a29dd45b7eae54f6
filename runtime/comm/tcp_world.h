// Ranks as processes connected pairwise by TCP, without MPI or any other
// library.
#ifndef PARTITA_RUNTIME_COMM_TCP_WORLD_H_
#define PARTITA_RUNTIME_COMM_TCP_WORLD_H_

#include <chrono>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/launch.h"
#include "runtime/comm/world.h"

namespace partita::comm {

class TcpMesh;

class TcpWorld : public World {
 public:
  // Meets the other ranks at launch.meet_at (see rendezvous.h). If a rank does
  // not arrive within the timeout, all others name it.
  static absl::StatusOr<std::unique_ptr<TcpWorld>> Start(
      const Launch& launch, std::chrono::milliseconds timeout);
  ~TcpWorld() override;

  int rank() const override;
  int size() const override;
  std::unique_ptr<Communicator> MakeCommunicator(
      const CommOptions& options) override;
  absl::Status Finish(std::chrono::milliseconds timeout) override;
  // The other ranks' next calls fail with this rank's name.
  void Abort(int exit_code) override;

 private:
  explicit TcpWorld(std::shared_ptr<TcpMesh> mesh);

  const std::shared_ptr<TcpMesh> mesh_;
};

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_TCP_WORLD_H_
