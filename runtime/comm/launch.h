// How this process was started: alone, or as one of many.
#ifndef PARTITA_RUNTIME_COMM_LAUNCH_H_
#define PARTITA_RUNTIME_COMM_LAUNCH_H_

#include <functional>
#include <optional>
#include <string>

namespace partita::comm {

// What a launcher says in the environment.
struct Launch {
  std::string launcher;  // "mpirun", "srun", "a PMI launcher"
  int rank = 0;
  int size = 1;
  int local_rank = 0;  // among the processes of this machine
  int local_size = 1;  // how many there are, where the launcher tells
};

// `get` looks a variable up. None where no launcher started this process, or
// where Slurm runs a script of one task.
std::optional<Launch> DetectLaunch(
    const std::function<const char*(const char*)>& get);
std::optional<Launch> DetectLaunch();

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_LAUNCH_H_
