// A schedule with the transfers between its ranks.
#ifndef PARTITA_COMPILER_CORE_TRANSFERS_H_
#define PARTITA_COMPILER_CORE_TRANSFERS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/core/schedule.h"

namespace partita::core {

// What a rank does next. Sends do not block; a receive does, until its value
// has come; between two ranks values arrive in the order they were sent.
struct Action {
  enum class Kind { kCompute, kSend, kReceive };
  Kind kind = Kind::kCompute;
  // Computed here; or what travels, named as in Needs by what it yields on its
  // producer: kForward an activation, kInputGrad a gradient. Version 0.
  Cell cell;
  int peer = -1;  // rank sent to or received from
};
bool operator==(const Action& a, const Action& b);

// Per rank, as the schedule's own lists: warm_up empty where it flushes.
struct TransferProgram {
  std::vector<std::vector<Action>> warm_up;
  std::vector<std::vector<Action>> actions;
};

// "F0.3", "send F0.3 to rank 1", "receive F0.3 from rank 1".
std::string ToString(const Action& action);

// Sends stand right after what makes the value. Receives stand before what
// needs it: right before, unless the same rank sent something earlier that is
// needed later, which is then received first; so the order is the same on both
// sides and no rank can wait forever. The schedule must pass CheckSchedule. One
// that does not flush must need values in the order in which they are made
// (those of Async and Async2bw do), which CheckTransfers finds out.
TransferProgram PlaceTransfers(const Schedule& schedule);

// Refuses a program unless it computes the schedule's cells in their order;
// every value needed on another rank is sent once after it is made and received
// once before it is needed, and no other; any two ranks send and receive in the
// same order; and no receive waits forever. The error names rank and cell.
// Actions count from 1, as cells do in CheckSchedule.
absl::Status CheckTransfers(const Schedule& schedule,
                            const TransferProgram& program);

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_TRANSFERS_H_
