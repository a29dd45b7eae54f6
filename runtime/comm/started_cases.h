// Tests of started operations, for every communicator.
#ifndef PARTITA_RUNTIME_COMM_STARTED_CASES_H_
#define PARTITA_RUNTIME_COMM_STARTED_CASES_H_

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "runtime/comm/communicator.h"

namespace partita::comm {

// Collective over all ranks: starts operations and runs others in place between
// them, in an order that would mix them up if both used one endpoint. Fails if
// a result differs from that of the operation in place.
absl::Status StartedAmongOthers(Communicator& communicator);

// Runs StartedAmongOthers on threads, and tests ranks that work, stall and fail
// while others await started operations.
void CheckStarted(
    const std::function<std::vector<std::unique_ptr<Communicator>>(
        int, std::chrono::milliseconds)>& make);

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_STARTED_CASES_H_
