// Arithmetic of axes, sub-axes and positions.
#include "compiler/core/mesh.h"

#include <algorithm>

namespace partita::core {
namespace {

// Returns the coordinate along a part of an axis.
int64_t PartOf(const Mesh& mesh, const AxisRef& ref, int64_t coordinate) {
  const int64_t below = mesh.axes[ref.axis].size / (ref.pre * ref.size);
  return coordinate / below % ref.size;
}

}  // namespace

int64_t Mesh::Size() const {
  int64_t size = 1;
  for (const Axis& axis : axes) size *= axis.size;
  return size;
}

int Mesh::Find(const std::string& name) const {
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i].name == name) return static_cast<int>(i);
  return -1;
}

AxisRef WholeAxis(const Mesh& mesh, int axis) {
  return {axis, 1, mesh.axes[axis].size};
}

bool Overlap(const AxisRef& a, const AxisRef& b) {
  if (a.size == 1 && b.size == 1) return a.axis == b.axis && a.pre == b.pre;
  return a.axis == b.axis && a.pre < b.pre * b.size && b.pre < a.pre * a.size;
}

bool OverlapAny(const AxisRef& a, const std::vector<AxisRef>& list) {
  for (const AxisRef& b : list)
    if (Overlap(a, b)) return true;
  return false;
}

int64_t SizeOf(const std::vector<AxisRef>& axes) {
  int64_t size = 1;
  for (const AxisRef& ref : axes) size *= ref.size;
  return size;
}

std::vector<AxisRef> Normalize(const Mesh& mesh,
                               const std::vector<AxisRef>& axes) {
  std::vector<AxisRef> joined;
  for (const AxisRef& ref : axes) {
    if (ref.size == 1 && mesh.axes[ref.axis].size != 1) continue;
    if (!joined.empty() && joined.back().axis == ref.axis &&
        joined.back().pre * joined.back().size == ref.pre) {
      joined.back().size *= ref.size;
      joined.back().priority = std::min(joined.back().priority, ref.priority);
    } else {
      joined.push_back(ref);
    }
  }
  return joined;
}

std::string ToString(const Mesh& mesh, const AxisRef& ref) {
  const Axis& axis = mesh.axes[ref.axis];
  if (ref.pre == 1 && ref.size == axis.size) return axis.name;
  return axis.name + ":(" + std::to_string(ref.pre) + ")" +
         std::to_string(ref.size);
}

std::string ToString(const Mesh& mesh, const std::vector<AxisRef>& axes) {
  std::string text;
  for (const AxisRef& ref : axes)
    text += (text.empty() ? "" : ", ") + ToString(mesh, ref);
  return text;
}

std::vector<int64_t> Coordinates(const Mesh& mesh, int64_t position) {
  std::vector<int64_t> coordinates(mesh.axes.size());
  for (size_t i = mesh.axes.size(); i-- > 0;) {
    coordinates[i] = position % mesh.axes[i].size;
    position /= mesh.axes[i].size;
  }
  return coordinates;
}

int64_t IndexAlong(const Mesh& mesh, const std::vector<AxisRef>& axes,
                   int64_t position) {
  const std::vector<int64_t> coordinates = Coordinates(mesh, position);
  int64_t index = 0;
  for (const AxisRef& ref : axes)
    index = index * ref.size + PartOf(mesh, ref, coordinates[ref.axis]);
  return index;
}

std::vector<int64_t> GroupAlong(const Mesh& mesh,
                                const std::vector<AxisRef>& axes,
                                int64_t position) {
  // Strides of the parts, in row-major positions.
  std::vector<int64_t> strides;
  int64_t base = position;
  for (const AxisRef& ref : axes) {
    int64_t stride = mesh.axes[ref.axis].size / (ref.pre * ref.size);
    for (size_t i = ref.axis + 1; i < mesh.axes.size(); ++i)
      stride *= mesh.axes[i].size;
    strides.push_back(stride);
    base -= stride * IndexAlong(mesh, {ref}, position);
  }
  std::vector<int64_t> group(SizeOf(axes), base);
  for (size_t member = 0; member < group.size(); ++member) {
    int64_t rest = static_cast<int64_t>(member);
    for (size_t i = axes.size(); i-- > 0;) {
      group[member] += strides[i] * (rest % axes[i].size);
      rest /= axes[i].size;
    }
  }
  return group;
}

}  // namespace partita::core
