// How this process was started: alone, or as one of many.
#ifndef PARTITA_RUNTIME_COMM_LAUNCH_H_
#define PARTITA_RUNTIME_COMM_LAUNCH_H_

#include <functional>
#include <optional>
#include <string>

namespace partita::comm {

// What a launcher says in the environment.
struct Launch {
  std::string launcher;  // "mpirun", "srun", "torchrun" ...
  int rank = 0;
  int size = 1;
  int local_rank = 0;  // among the processes of this machine
  int local_size = 1;  // how many there are, where the launcher tells
  // Where processes meet that connect without MPI: "tcp://HOST:PORT" or
  // "file:///PATH". Empty: by MPI.
  std::string meet_at;
};

// `get` looks a variable up. RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as
// torchrun sets them, outrank what srun says, under which torchrun may run;
// PARTITA_MEET_AT outranks every other address, and needs a rank and a size
// from any launcher, or RANK and WORLD_SIZE. None where no launcher started
// this process, where Slurm runs a script of one task, or where torchrun's
// variables tell of one process and PARTITA_MEET_AT of nothing: one process
// runs all devices as threads.
std::optional<Launch> DetectLaunch(
    const std::function<const char*(const char*)>& get);
std::optional<Launch> DetectLaunch();

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_LAUNCH_H_
