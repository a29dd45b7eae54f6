// Ranks as threads of one process.
#ifndef PARTITA_RUNTIME_COMM_LOCAL_H_
#define PARTITA_RUNTIME_COMM_LOCAL_H_

#include <memory>
#include <vector>

#include "runtime/comm/communicator.h"

namespace partita::comm {

// One communicator per rank. Each may outlive the others; a rank that is
// destroyed while others wait for it makes no progress from then on.
std::vector<std::unique_ptr<Communicator>> MakeLocalCommunicators(
    int size, const CommOptions& options = {});

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_LOCAL_H_
