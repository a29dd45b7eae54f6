// Tests of rows that travel to other members and back.
#ifndef PARTITA_RUNTIME_COMM_ROW_CASES_H_
#define PARTITA_RUNTIME_COMM_ROW_CASES_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "runtime/comm/communicator.h"

namespace partita::comm {

// Collective over all ranks: sends rows and returns them, with destinations
// that are spread, missing, and all at one member. Fails if a result differs
// from the definition in program.fbs.
absl::Status MoveRowsAround(Communicator& communicator);

// Runs MoveRowsAround on one to five ranks, one thread per rank. Checks that
// every rank ends if one gets more rows than fit, with the factor that would
// have been enough.
void CheckRows(
    const std::function<std::vector<std::unique_ptr<Communicator>>(int)>& make);

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_ROW_CASES_H_
