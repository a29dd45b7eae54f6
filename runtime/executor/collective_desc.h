// Translates a program's collectives and transfers to the communicator's types.
#ifndef PARTITA_RUNTIME_EXECUTOR_COLLECTIVE_DESC_H_
#define PARTITA_RUNTIME_EXECUTOR_COLLECTIVE_DESC_H_

#include <optional>
#include <string>
#include <vector>

#include "runtime/comm/operation.h"
#include "runtime/executor/profile.h"
#include "runtime/program/mesh.h"
#include "runtime/program/program_generated.h"

namespace partita::executor {

// Translate enum values.
comm::Kind ToKind(program::CollectiveKind kind);
comm::Reduction ToReduction(program::Reduction reduction);

// The operation as seen by the rank at `place`.
comm::Operation ToOperation(const program::Collective& collective,
                            const std::string& name,
                            const program::MeshPlace& place);
// Ranks of the operation's group, in order.
std::vector<int> GroupOf(const program::Collective& collective,
                         const program::MeshPlace& place);

// A send or receive of the rank at `place`: the operation, named alike on both
// ends, and its group with the sender first. Empty for other instructions.
struct TransferDesc {
  comm::Operation operation;
  std::vector<int> ranks;
};
std::optional<TransferDesc> TransferOf(const program::Instruction& instruction,
                                       const program::MeshPlace& place);

// "all_reduce sum f32[8,16] over tensor". `bytes` counts bytes that the rank
// sends and receives.
StepLabel LabelOf(const program::Collective& collective,
                  const program::Mesh* mesh, const program::MeshPlace& place);
// "send f32[8,16] to entry 1", "receive f32[8,16] from entry 0".
StepLabel LabelOf(const TransferDesc& transfer, const program::Program& program,
                  const program::MeshPlace& place);

}  // namespace partita::executor

#endif  // PARTITA_RUNTIME_EXECUTOR_COLLECTIVE_DESC_H_
