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
  // Which device stands at each row-major position; empty: device i at i.
  std::vector<int64_t> device_ids;

  int64_t Size() const;
  // -1 if there is no such axis.
  int Find(const std::string& name) const;
};

// An axis of a mesh or a part of one. A coordinate c of an axis of extent n is
// read as (c / (n / pre)) major, then c / (n / (pre * size)) % size: the part
// with `pre` faster than nothing and `size` positions. The whole axis has pre 1
// and the axis's size. Written a or a:(pre)size, as users of Shardy know it.
struct AxisRef {
  int axis = 0;
  int64_t pre = 1;
  int64_t size = 1;
  // Of the plan's entry that put it where it stands, lower numbers first. It
  // is the same axis whatever its priority.
  int priority = 0;

  bool operator==(const AxisRef& other) const {
    return axis == other.axis && pre == other.pre && size == other.size;
  }
  bool operator!=(const AxisRef& other) const { return !(*this == other); }
};

AxisRef WholeAxis(const Mesh& mesh, int axis);
// Whether two references share devices' positions (same axis, parts that meet).
bool Overlap(const AxisRef& a, const AxisRef& b);
bool OverlapAny(const AxisRef& a, const std::vector<AxisRef>& list);
// Number of positions along a list of axes.
int64_t SizeOf(const std::vector<AxisRef>& axes);
// Joins neighbours that are parts of one axis and follow each other: a:(1)2,
// a:(2)2 become a where a has 4 positions. Of two priorities the first counts.
std::vector<AxisRef> Normalize(const Mesh& mesh,
                               const std::vector<AxisRef>& axes);
// "a", "a:(1)2".
std::string ToString(const Mesh& mesh, const AxisRef& ref);
// "a, b:(1)2".
std::string ToString(const Mesh& mesh, const std::vector<AxisRef>& axes);

// Coordinates of the device at a row-major position of the mesh.
std::vector<int64_t> Coordinates(const Mesh& mesh, int64_t position);
// Linear index of that device along `axes`, the first axis slowest.
int64_t IndexAlong(const Mesh& mesh, const std::vector<AxisRef>& axes,
                   int64_t position);
// The positions that differ from `position` at most along `axes`, ordered by
// IndexAlong: a communicator's members.
std::vector<int64_t> GroupAlong(const Mesh& mesh,
                                const std::vector<AxisRef>& axes,
                                int64_t position);

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_MESH_H_
