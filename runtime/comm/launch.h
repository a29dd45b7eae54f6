// Detects how this process was started: alone, or as one of several.
#ifndef PARTITA_RUNTIME_COMM_LAUNCH_H_
#define PARTITA_RUNTIME_COMM_LAUNCH_H_

#include <functional>
#include <optional>
#include <string>

namespace partita::comm {

// Facts from the launcher's environment variables.
struct Launch {
  std::string launcher;  // "mpirun", "srun", "torchrun" ...
  int rank = 0;
  int size = 1;
  int local_rank = 0;  // among the processes of this machine
  int local_size = 1;  // number of processes on this machine, if known
  // Rendezvous address for connecting without MPI: "tcp://HOST:PORT" or
  // "file:///PATH". Empty: connect by MPI.
  std::string meet_at;
};

// Reads the environment through `get`. RANK, WORLD_SIZE, MASTER_ADDR and
// MASTER_PORT, as set by torchrun, take precedence over srun's variables, since
// torchrun may run under srun. PARTITA_MEET_AT takes precedence over every
// other address; it needs rank and size from a launcher, or RANK and
// WORLD_SIZE.
// Returns nothing, so that one process runs all devices as threads, in three
// cases: no launcher started this process; Slurm runs a single task or batch
// script; or torchrun started one process and PARTITA_MEET_AT is not set.
std::optional<Launch> DetectLaunch(
    const std::function<const char*(const char*)>& get);
std::optional<Launch> DetectLaunch();

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_LAUNCH_H_
