// Ranks as threads of one process.
#ifndef PARTITA_RUNTIME_COMM_LOCAL_H_
#define PARTITA_RUNTIME_COMM_LOCAL_H_

#include <memory>
#include <vector>

#include "runtime/comm/communicator.h"

namespace partita::comm {

// Makes one communicator per rank. Each may outlive the others; a destroyed
// rank makes no progress for ranks that wait for it.
std::vector<std::unique_ptr<Communicator>> MakeLocalCommunicators(
    int size, const CommOptions& options = {});

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_LOCAL_H_
