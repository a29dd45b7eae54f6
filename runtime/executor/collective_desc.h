// Collectives of a program in the communicator's terms.
#ifndef PARTITA_RUNTIME_EXECUTOR_COLLECTIVE_DESC_H_
#define PARTITA_RUNTIME_EXECUTOR_COLLECTIVE_DESC_H_

#include <string>
#include <vector>

#include "runtime/comm/operation.h"
#include "runtime/executor/profile.h"
#include "runtime/program/mesh.h"
#include "runtime/program/program_generated.h"

namespace partita::executor {

// The operation as the rank at `place` takes part in it.
comm::Operation ToOperation(const program::Collective& collective,
                            const std::string& name,
                            const program::MeshPlace& place);
// Ranks of its group, in order.
std::vector<int> GroupOf(const program::Collective& collective,
                         const program::MeshPlace& place);

// "all_reduce sum f32[8,16] over tensor"; bytes are what the rank sends and
// receives.
StepLabel LabelOf(const program::Collective& collective,
                  const program::Mesh* mesh, const program::MeshPlace& place);

}  // namespace partita::executor

#endif  // PARTITA_RUNTIME_EXECUTOR_COLLECTIVE_DESC_H_
