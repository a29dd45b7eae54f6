// The position of a device in a program's mesh, and its groups.
#ifndef PARTITA_RUNTIME_PROGRAM_MESH_H_
#define PARTITA_RUNTIME_PROGRAM_MESH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/program/program_generated.h"

namespace partita::program {

using AxisList = flatbuffers::Vector<const AxisPart*>;

// All functions here require a program that passed ValidateProgram. A null mesh
// has one device; a null list of axes is empty.

// Number of devices.
int64_t SizeOf(const Mesh* mesh);
// Number of devices in each group along `axes`.
int64_t GroupSize(const AxisList* axes);
// "data=2,tensor=4"; empty for no mesh.
std::string DescribeMesh(const Mesh* mesh);

// One device of a mesh.
class MeshPlace {
 public:
  // `rank` in [0, SizeOf(mesh)).
  MeshPlace(const Mesh* mesh, int64_t rank);

  int64_t rank() const { return rank_; }
  // This device's linear index along `axes`.
  int64_t IndexAlong(const AxisList* axes) const;
  // Ranks of the group along `axes`, in the order of their indices.
  std::vector<int64_t> GroupAlong(const AxisList* axes) const;
  // "rank 3 (data 1, tensor 1)"
  std::string Describe() const;

 private:
  const Mesh* mesh_;
  int64_t rank_;
  std::vector<int64_t> extents_;
  std::vector<int64_t> coordinates_;
  std::vector<int64_t> rank_at_;  // by position; empty: the position itself
};

// The entry that the device at `place` runs.
const Entry& EntryAt(const Program& program, const MeshPlace& place);

// Rows [begin, end) of a dimension.
struct Rows {
  int64_t begin = 0;
  int64_t end = 0;
};
// Rows of dimension `dim` that `place` holds.
Rows OwnedRows(const Shard& shard, size_t dim, const MeshPlace& place);
// Rows that `place` holds in all dimensions.
std::vector<Rows> OwnedBlock(const Shard& shard, const MeshPlace& place);

// For each entry, by number: true if it holds this input, output or parameter
// of the program.
enum class Held { kInput, kOutput, kParameter };
std::vector<bool> EntriesThatHold(const Program& program, Held what,
                                  int64_t index);
// The ranks of `entries`, in order, whose block no lower rank of these entries
// holds.
std::vector<int64_t> FirstHolders(const Program& program, const Shard* shard,
                                  const std::vector<bool>& entries);
// True if `rank` is one of FirstHolders.
bool HoldsFirstCopy(const Program& program, const Shard* shard,
                    const std::vector<bool>& entries, int64_t rank);

}  // namespace partita::program

#endif  // PARTITA_RUNTIME_PROGRAM_MESH_H_
