// A schedule with the transfers between its ranks.
#ifndef PARTITA_COMPILER_CORE_TRANSFERS_H_
#define PARTITA_COMPILER_CORE_TRANSFERS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/core/schedule.h"

namespace partita::core {

// One action of a rank. Sends do not block. A receive blocks until its value
// has arrived. Values between two ranks arrive in the order in which they were
// sent.
struct Action {
  enum class Kind { kCompute, kSend, kReceive };
  Kind kind = Kind::kCompute;
  // The computed cell, or the transferred value, named by its result on the
  // producer as in Needs: kForward an activation, kInputGrad a gradient. Its
  // version is 0.
  Cell cell;
  int peer = -1;  // other rank of a transfer
};
bool operator==(const Action& a, const Action& b);

// Actions per rank; warm_up is empty if the schedule flushes.
struct TransferProgram {
  std::vector<std::vector<Action>> warm_up;
  std::vector<std::vector<Action>> actions;
};

// "F0.3", "send F0.3 to rank 1", "receive F0.3 from rank 1".
std::string ToString(const Action& action);

// Places each send right after the cell that computes the value. Places each
// receive right before the cell that needs it. If the same rank sent another
// value earlier that is needed later, that value is received first. So both
// sides have the same order, and no rank waits forever. The schedule must pass
// CheckSchedule. A schedule without flushes must need values in the order in
// which they are computed, as Async and Async2bw do; CheckTransfers detects
// violations.
TransferProgram PlaceTransfers(const Schedule& schedule);

// Returns an error unless the program computes the schedule's cells in order,
// each value needed on another rank is sent once after it is computed and
// received once before it is needed, no other value is transferred, any two
// ranks send and receive in the same order, and no receive waits forever. The
// error names rank and action. Actions count from 1, as cells do in
// CheckSchedule.
absl::Status CheckTransfers(const Schedule& schedule,
                            const TransferProgram& program);

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_TRANSFERS_H_
