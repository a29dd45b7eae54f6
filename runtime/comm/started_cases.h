// What operations that are started must do, for tests of every communicator.
#ifndef PARTITA_RUNTIME_COMM_STARTED_CASES_H_
#define PARTITA_RUNTIME_COMM_STARTED_CASES_H_

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "runtime/comm/communicator.h"

namespace partita::comm {

// All ranks call it: operations are started, and others run in place among
// them, in an order that mixes them up if both used one end. An error if a
// result differs from that of the operation in place.
absl::Status StartedAmongOthers(Communicator& communicator);

// The above on threads; ranks that work, stall and fail while others wait for
// what they started.
void CheckStarted(
    const std::function<std::vector<std::unique_ptr<Communicator>>(
        int, std::chrono::milliseconds)>& make);

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_STARTED_CASES_H_
