// Reads the variables of mpirun, PMI launchers, Slurm and torchrun.
#include "runtime/comm/launch.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace partita::comm {
namespace {

// Address of torchrun's rendezvous. If torchrun's own store holds the port
// (TORCHELASTIC_USE_AGENT_STORE), Partita uses the next one. Empty if the
// variables are not set.
std::string AddressOfTorchrun(
    const std::function<const char*(const char*)>& get) {
  const char* const host = get("MASTER_ADDR");
  const char* const port = get("MASTER_PORT");
  int number;
  if (host == nullptr || *host == '\0' || port == nullptr ||
      !absl::SimpleAtoi(port, &number))
    return "";
  const char* const held = get("TORCHELASTIC_USE_AGENT_STORE");
  if (held != nullptr && std::string(held) == "True") ++number;
  return absl::StrCat("tcp://", host, ":", number);
}

}  // namespace

std::optional<Launch> DetectLaunch(
    const std::function<const char*(const char*)>& get) {
  const auto number = [&get](const char* name) -> std::optional<int> {
    const char* text = get(name);
    int value;
    if (text == nullptr || !absl::SimpleAtoi(text, &value) || value < 0)
      return std::nullopt;
    return value;
  };
  const char* const meet_at = get("PARTITA_MEET_AT");
  const std::string chosen = meet_at == nullptr ? "" : meet_at;
  const std::string torch = AddressOfTorchrun(get);
  const struct {
    const char* launcher;
    const char* size;
    const char* rank;
    const char* local_rank;
    const char* local_size;
  } kinds[] = {
      // Without an address, RANK and WORLD_SIZE mean nothing.
      {chosen.empty() && torch.empty() ? "" : "torchrun", "WORLD_SIZE", "RANK",
       "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
      {"mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK",
       "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
      // Slurm sets STEP_NUM_TASKS for tasks started by srun, but not in a batch
      // script. It gives each task its own processors.
      {"srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_LOCALID", ""},
      {"srun", "SLURM_NTASKS", "SLURM_PROCID", "SLURM_LOCALID", ""},
      {"a PMI launcher", "PMI_SIZE", "PMI_RANK", "MPI_LOCALRANKID",
       "MPI_LOCALNRANKS"},
  };
  for (const auto& kind : kinds) {
    const std::optional<int> size = number(kind.size);
    const std::optional<int> rank = number(kind.rank);
    if (!size || !rank || *size < 1) continue;
    const std::string launcher = kind.launcher;
    if (launcher.empty()) continue;
    // A batch script or a single srun task can use threads.
    if (launcher == "srun" && (*size == 1 || get("SLURM_STEP_ID") == nullptr))
      continue;
    // torchrun of one process, without an explicit address.
    if (launcher == "torchrun" && *size == 1 && chosen.empty())
      return std::nullopt;
    return Launch{launcher,
                  *rank,
                  *size,
                  number(kind.local_rank).value_or(0),
                  std::max(1, number(kind.local_size).value_or(1)),
                  chosen.empty() && launcher == "torchrun" ? torch : chosen};
  }
  return std::nullopt;
}

std::optional<Launch> DetectLaunch() {
  return DetectLaunch([](const char* name) { return std::getenv(name); });
}

}  // namespace partita::comm
