// Chooses how the processes connect.
#include "runtime/comm/world.h"

#include <utility>

#include "runtime/comm/mpi_world.h"
#include "runtime/comm/tcp_world.h"

namespace partita::comm {
namespace {

template <typename Made>
absl::StatusOr<std::unique_ptr<World>> AsWorld(
    absl::StatusOr<std::unique_ptr<Made>> made) {
  if (!made.ok()) return made.status();
  return std::unique_ptr<World>(*std::move(made));
}

}  // namespace

absl::StatusOr<std::unique_ptr<World>> StartWorld(const Launch& launch,
                                                  const CommOptions& options) {
  return launch.meet_at.empty()
             ? AsWorld(MpiWorld::Start(launch))
             : AsWorld(TcpWorld::Start(launch, options.timeout));
}

}  // namespace partita::comm
