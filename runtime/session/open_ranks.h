// Loads a model's ranks on the devices that the options name.
#ifndef PARTITA_RUNTIME_SESSION_OPEN_RANKS_H_
#define PARTITA_RUNTIME_SESSION_OPEN_RANKS_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/launch.h"
#include "runtime/executor/rank_group.h"
#include "runtime/program/artifact.h"
#include "runtime/session/options.h"

namespace partita::session {

// Communicator options, with the timeout of `options`.
comm::CommOptions CommOptionsOf(const SessionOptions& options);

// Where optimizer states are: the options override the program.
executor::StateStoreOptions StateStoreOf(const SessionOptions& options,
                                         const program::Program& program);

// FailedPrecondition if the options limit buffers of files that there are not.
absl::Status CheckStateStore(const SessionOptions& options,
                             const program::Program& program);

// FailedPrecondition if the number of processes differs from the number of
// devices of the model's mesh; the message says what to do.
absl::Status CheckProcesses(const program::Artifact& artifact,
                            const SessionOptions& options,
                            const comm::Launch& launch);

// Opens a model with all its ranks in this process. With `states`, which was
// opened on the same devices and must outlive the result, the ranks use the
// states and the trained parameters of its ranks.
absl::StatusOr<std::unique_ptr<executor::RankGroup>> OpenAllRanks(
    const SessionOptions& options, const executor::RankGroup* states = nullptr);

// Opens a model as one rank of a job, with `states` as above. `job` must
// outlive the result. If an error is known to all ranks, the communicator is
// agreed().
absl::StatusOr<std::unique_ptr<executor::RankGroup>> OpenOneRank(
    const SessionOptions& options, const comm::Launch& launch,
    comm::Communicator& job, const executor::RankGroup* states = nullptr);

}  // namespace partita::session

#endif  // PARTITA_RUNTIME_SESSION_OPEN_RANKS_H_
