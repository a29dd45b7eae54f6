// Collectives and transfers of a program in the communicator's terms.
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

// The format's values as the communicator's.
comm::Kind ToKind(program::CollectiveKind kind);
comm::Reduction ToReduction(program::Reduction reduction);

// The operation as the rank at `place` takes part in it.
comm::Operation ToOperation(const program::Collective& collective,
                            const std::string& name,
                            const program::MeshPlace& place);
// Ranks of its group, in order.
std::vector<int> GroupOf(const program::Collective& collective,
                         const program::MeshPlace& place);

// A send or receive of the rank at `place`: the operation, whose name is that
// of both ends, and the group, the sender first. Nothing for other
// instructions.
struct TransferDesc {
  comm::Operation operation;
  std::vector<int> ranks;
};
std::optional<TransferDesc> TransferOf(const program::Instruction& instruction,
                                       const program::MeshPlace& place);

// "all_reduce sum f32[8,16] over tensor"; bytes are what the rank sends and
// receives.
StepLabel LabelOf(const program::Collective& collective,
                  const program::Mesh* mesh, const program::MeshPlace& place);
// "send f32[8,16] to entry 1", "receive f32[8,16] from entry 0".
StepLabel LabelOf(const TransferDesc& transfer, const program::Program& program,
                  const program::MeshPlace& place);

}  // namespace partita::executor

#endif  // PARTITA_RUNTIME_EXECUTOR_COLLECTIVE_DESC_H_
