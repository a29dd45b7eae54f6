// Finds the axes along which collectives communicate, from numbers of devices.
#include "frontends/stablehlo/manual/axes.h"

#include <map>

#include "llvm/ADT/STLExtras.h"

namespace partita::stablehlo {

using builder::Dims;
using builder::Shape;

ManualAxes::ManualAxes(dist::MeshAttr mesh, mlir::DenseI64ArrayAttr devices,
                       const llvm::StringSet<>& names) {
  for (auto [place, axis] : llvm::enumerate(mesh.getAxes())) {
    mesh_sizes_.push_back(axis.getSize());
    if (axis.getSize() == 1 || !names.contains(axis.getName())) continue;
    axes_.push_back({axis.getName().str(), axis.getSize(), place});
    sizes_.push_back(axis.getSize());
  }
  positions_ = builder::countUp(deviceCount());
  if (devices) positions_ = builder::inversePermutation(devices.asArrayRef());
}

int64_t ManualAxes::sizeOf(Dims axes) const {
  int64_t size = 1;
  for (int64_t axis : axes) size *= sizes_[axis];
  return size;
}

int64_t ManualAxes::find(llvm::StringRef name) const {
  for (auto [i, axis] : llvm::enumerate(axes_))
    if (axis.name == name) return static_cast<int64_t>(i);
  return -1;
}

Shape ManualAxes::coordinates(int64_t device) const {
  if (device < 0 || device >= deviceCount()) return {};
  Shape result(mesh_sizes_.size());
  int64_t position = positions_[device];
  for (size_t i = mesh_sizes_.size(); i-- > 0;) {
    result[i] = position % mesh_sizes_[i];
    position /= mesh_sizes_[i];
  }
  return result;
}

bool ManualAxes::toManual(Dims places, Shape& axes) const {
  axes.clear();
  for (int64_t place : places) {
    const auto* found = llvm::find_if(axes_, [&](const ManualAxis& axis) {
      return static_cast<int64_t>(axis.place) == place;
    });
    if (found == axes_.end()) return false;
    axes.push_back(found - axes_.begin());
  }
  return true;
}

std::string ManualAxes::axesOfGroups(Dims groups, int64_t members,
                                     Shape& axes) const {
  const std::string whole =
      "expected groups of all devices along whole axes of the manual "
      "computation";
  if (members < 1 || static_cast<int64_t>(groups.size()) != deviceCount())
    return whole;
  // In the first group, the member whose coordinates are those of the first one
  // but for a step along one axis says how fast members count along that axis.
  const Shape first = coordinates(groups[0]);
  if (first.empty() && !mesh_sizes_.empty()) return whole;
  std::map<int64_t, int64_t, std::greater<>> places;  // by stride
  for (int64_t member = 1; member < members; ++member) {
    const Shape other = coordinates(groups[member]);
    if (other.empty()) return whole;
    Shape moved;
    for (size_t i = 0; i < other.size(); ++i)
      if (other[i] != first[i]) moved.push_back(static_cast<int64_t>(i));
    if (moved.size() == 1 && other[moved[0]] == first[moved[0]] + 1)
      places.try_emplace(member, moved[0]);
  }
  Shape order;
  for (const auto& [stride, place] : places) order.push_back(place);
  if (!toManual(order, axes) || sizeOf(axes) != members) return whole;
  llvm::SmallVector<bool> seen(deviceCount(), false);
  for (size_t start = 0; start < groups.size(); start += members) {
    Shape expected = coordinates(groups[start]);
    if (expected.empty() && !mesh_sizes_.empty()) return whole;
    for (int64_t member = 0; member < members; ++member) {
      int64_t rest = member;
      for (size_t i = order.size(); i-- > 0;) {
        expected[order[i]] = rest % mesh_sizes_[order[i]];
        rest /= mesh_sizes_[order[i]];
      }
      const int64_t device = groups[start + member];
      if (coordinates(device) != expected || seen[device]) return whole;
      seen[device] = true;
    }
  }
  return "";
}

std::string ManualAxes::axesOfPairs(Dims pairs, Shape& axes,
                                    Shape& sources) const {
  Shape places;
  for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
    const Shape from = coordinates(pairs[i]), to = coordinates(pairs[i + 1]);
    if (from.size() != mesh_sizes_.size() || to.size() != mesh_sizes_.size())
      return "expected pairs of devices of the mesh";
    for (size_t place = 0; place < from.size(); ++place)
      if (from[place] != to[place] && !llvm::is_contained(places, place))
        places.push_back(static_cast<int64_t>(place));
  }
  llvm::sort(places);
  if (!toManual(places, axes))
    return "expected pairs of devices along axes of the manual computation";
  const auto index = [&](Dims at) {
    int64_t result = 0;
    for (int64_t place : places)
      result = result * mesh_sizes_[place] + at[place];
    return result;
  };
  sources.assign(sizeOf(axes), -1);
  Shape counts(sources.size(), 0);
  llvm::SmallVector<bool> seen(deviceCount(), false);
  const std::string same =
      "expected the same pairs for all devices that differ along other axes";
  for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
    const int64_t from = index(coordinates(pairs[i])),
                  to = index(coordinates(pairs[i + 1]));
    if (seen[pairs[i + 1]] || (sources[to] >= 0 && sources[to] != from))
      return same;
    seen[pairs[i + 1]] = true;
    sources[to] = from;
    ++counts[to];
  }
  for (int64_t count : counts)
    if (count != 0 &&
        count * static_cast<int64_t>(sources.size()) != deviceCount())
      return same;
  return "";
}

Shape ManualAxes::deviceNumbers() const {
  const Shape devices = builder::inversePermutation(positions_);
  Shape result;
  for (int64_t i = 0; i < builder::product(sizes_); ++i) {
    Shape at(mesh_sizes_.size(), 0);
    int64_t rest = i;
    for (size_t axis = axes_.size(); axis-- > 0;) {
      at[axes_[axis].place] = rest % sizes_[axis];
      rest /= sizes_[axis];
    }
    int64_t position = 0;
    for (size_t place = 0; place < at.size(); ++place)
      position = position * mesh_sizes_[place] + at[place];
    result.push_back(devices[position]);
  }
  return result;
}

}  // namespace partita::stablehlo
