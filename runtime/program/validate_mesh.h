// Checks meshes, references to their axes, and collectives.
#ifndef PARTITA_RUNTIME_PROGRAM_VALIDATE_MESH_H_
#define PARTITA_RUNTIME_PROGRAM_VALIDATE_MESH_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/program/mesh.h"
#include "runtime/program/program_generated.h"

namespace partita::program {

// (V9); a null mesh is valid.
absl::Status ValidateMesh(const Mesh* mesh);
// (V9): returns the size of the groups along `axes`.
absl::StatusOr<int64_t> ValidateAxes(const Mesh* mesh, const AxisList* axes);
// True if no digit of one part is a digit of the other.
bool Independent(const AxisPart& a, const AxisPart& b);
// (V9): checks that the valid `type` is the block described by `shard`; a null
// shard is valid. Returns the number of elements of the global tensor.
absl::StatusOr<int64_t> ValidateShard(const Mesh* mesh, const Shard* shard,
                                      const TensorType& type);
// (V10)
absl::Status ValidateCollective(const Mesh* mesh, const Collective& collective,
                                const Instruction& instruction);

}  // namespace partita::program

#endif  // PARTITA_RUNTIME_PROGRAM_VALIDATE_MESH_H_
