// Ranks as processes under MPI.
#ifndef PARTITA_RUNTIME_COMM_MPI_WORLD_H_
#define PARTITA_RUNTIME_COMM_MPI_WORLD_H_

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/launch.h"
#include "runtime/comm/mpi_api.h"
#include "runtime/comm/world.h"

namespace partita::comm {

class MpiWorld : public World {
 public:
  // Opens libpartita_mpi.so (`plugin`; if empty, the one beside the
  // program or beside libpartita_runtime.so), starts MPI and learns the other
  // ranks' names. FailedPrecondition, with what to do, if MPI is not installed
  // or sees a different number of processes than `launch`.
  static absl::StatusOr<std::unique_ptr<MpiWorld>> Start(
      const Launch& launch, const std::string& plugin = "");

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::unique_ptr<Communicator> MakeCommunicator(
      const CommOptions& options) override;
  absl::Status Finish(std::chrono::milliseconds timeout) override;
  void Abort(int exit_code) override;

 private:
  MpiWorld() = default;

  const PartitaMpiApi* api_ = nullptr;
  int rank_ = 0;
  int size_ = 1;
  std::string names_;  // PARTITA_MPI_NAME_BYTES per rank
};

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_MPI_WORLD_H_
