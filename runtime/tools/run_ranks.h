// Runs work on a loaded model, in this process or as one rank of several.
#ifndef PARTITA_RUNTIME_TOOLS_RUN_RANKS_H_
#define PARTITA_RUNTIME_TOOLS_RUN_RANKS_H_

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/session/open_ranks.h"
#include "runtime/session/options.h"

namespace partita::tools {

using RanksWork = std::function<absl::Status(executor::RankGroup&)>;

// Opens the model for this process (alone, or under mpirun, srun or torchrun),
// does the work and returns the exit code. Prints an error to `error`, once if
// all processes know it.
int RunWithRanks(const session::SessionOptions& options, const RanksWork& work,
                 std::ostream& error);

// Ranks of a model, and of others that use its states.
using RanksOfAll = std::function<absl::Status(
    executor::RankGroup&, const std::vector<executor::RankGroup*>&)>;

// The same with more models, which use the states and the trained parameters of
// the first.
int RunWithRanks(const session::SessionOptions& options,
                 const std::vector<std::string>& others, const RanksOfAll& work,
                 std::ostream& error);

// True if this process should print when several processes read the same
// command line: rank 0, or a process without a launcher.
bool Speaks();

// Prints an error. Returns the exit code: 0, 1 for a user's error, 70 for a bug
// in Partita.
int Tell(const absl::Status& status, std::ostream& error);

// Peak resident set of this process in bytes, mapped files included; 0 if
// unknown.
int64_t PeakProcessBytes();

// Unavailable if the output could not be written.
absl::Status Flush(std::ostream& out);

}  // namespace partita::tools

#endif  // PARTITA_RUNTIME_TOOLS_RUN_RANKS_H_
