// A mesh of devices: named axes, the outermost (slowest network) first.
#ifndef PARTITA_COMPILER_CORE_MESH_H_
#define PARTITA_COMPILER_CORE_MESH_H_

#include <cstdint>
#include <string>
#include <vector>

namespace partita::core {

struct Axis {
  std::string name;
  int64_t size = 1;
};

struct Mesh {
  std::vector<Axis> axes;
  // Device at each row-major position; empty: device i is at position i.
  std::vector<int64_t> device_ids;

  int64_t Size() const;
  // Returns -1 if there is no such axis.
  int Find(const std::string& name) const;
};

// An axis of a mesh, or a part of one. On an axis of extent n, the part
// a:(pre)size has coordinate c / (n / (pre * size)) % size. The whole axis has
// pre 1 and the axis's size. It is written a or a:(pre)size, as in Shardy.
struct AxisRef {
  int axis = 0;
  int64_t pre = 1;
  int64_t size = 1;
  // Priority of the plan entry that placed this axis; lower numbers come first.
  // Equality ignores it.
  int priority = 0;

  bool operator==(const AxisRef& other) const {
    return axis == other.axis && pre == other.pre && size == other.size;
  }
  bool operator!=(const AxisRef& other) const { return !(*this == other); }
};

AxisRef WholeAxis(const Mesh& mesh, int axis);
// True if two references share positions: same axis, overlapping parts.
bool Overlap(const AxisRef& a, const AxisRef& b);
bool OverlapAny(const AxisRef& a, const std::vector<AxisRef>& list);
// Number of positions along a list of axes.
int64_t SizeOf(const std::vector<AxisRef>& axes);
// Joins neighbours that are consecutive parts of one axis: a:(1)2, a:(2)2
// become a if a has 4 positions. The result has the priority of the first part.
std::vector<AxisRef> Normalize(const Mesh& mesh,
                               const std::vector<AxisRef>& axes);
// "a", "a:(1)2".
std::string ToString(const Mesh& mesh, const AxisRef& ref);
// "a, b:(1)2".
std::string ToString(const Mesh& mesh, const std::vector<AxisRef>& axes);

// Returns the coordinates of the device at a row-major position of the mesh.
std::vector<int64_t> Coordinates(const Mesh& mesh, int64_t position);
// Returns the linear index of that device along `axes`; the first axis is the
// slowest.
int64_t IndexAlong(const Mesh& mesh, const std::vector<AxisRef>& axes,
                   int64_t position);
// Returns the members of a communicator: all positions that differ from
// `position` only along `axes`, ordered by IndexAlong.
std::vector<int64_t> GroupAlong(const Mesh& mesh,
                                const std::vector<AxisRef>& axes,
                                int64_t position);

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_MESH_H_
