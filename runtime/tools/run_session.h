// Work on a loaded model, in this process or as one of many.
#ifndef PARTITA_RUNTIME_TOOLS_RUN_SESSION_H_
#define PARTITA_RUNTIME_TOOLS_RUN_SESSION_H_

#include <cstdint>
#include <functional>
#include <ostream>

#include "absl/status/status.h"
#include "runtime/session/options.h"
#include "runtime/session/session.h"

namespace partita::tools {

using SessionWork = std::function<absl::Status(session::Session&)>;

// Opens a session where this process stands (alone, or under mpirun or srun),
// does the work and returns the exit code. An error is told on `error`, once if
// all processes know it.
int RunInSession(const session::SessionOptions& options,
                 const SessionWork& work, std::ostream& error);

// Whether this process is the one that speaks where many read the same command
// line.
bool Speaks();

// Tells an error. Returns the exit code: 0, 1 for a user's error, 70 for ours.
int Tell(const absl::Status& status, std::ostream& error);

// The most memory that this process had at once: its resident set, mapped files
// included; 0 if that is not known.
int64_t PeakProcessBytes();

// Unavailable if what was written did not arrive.
absl::Status Flush(std::ostream& out);

}  // namespace partita::tools

#endif  // PARTITA_RUNTIME_TOOLS_RUN_SESSION_H_
