// Checks of meshes, lists of axes and shards.
#include "runtime/program/validate_mesh.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/dtype.h"
#include "runtime/base/status_macros.h"
#include "runtime/program/types.h"
#include "runtime/program/validate.h"

namespace partita::program {
namespace {

absl::Status Bad(const std::string& message) {
  return absl::InvalidArgumentError(message);
}

std::string Show(const Mesh& mesh, const AxisPart& part) {
  const MeshAxis& axis = *mesh.axes()->Get(static_cast<unsigned>(part.axis()));
  if (part.pre() == 1 && part.size() == axis.size()) return axis.name()->str();
  return absl::StrCat(axis.name()->str(), ":(", part.pre(), ")", part.size());
}

absl::Status CheckDeviceIds(const Mesh& mesh, int64_t size) {
  if (!IsAligned(mesh.device_ids())) return Bad("device ids are not aligned");
  const std::vector<int64_t> ids = ToVector(mesh.device_ids());
  if (ids.empty()) return absl::OkStatus();
  std::vector<bool> seen(static_cast<size_t>(size), false);
  if (static_cast<int64_t>(ids.size()) != size)
    return Bad(absl::StrCat(ids.size(), " device ids for ", size, " devices"));
  for (const int64_t id : ids) {
    if (id < 0 || id >= size || seen[static_cast<size_t>(id)])
      return Bad(absl::StrCat("device id ", id, " is out of range or there ",
                              "twice"));
    seen[static_cast<size_t>(id)] = true;
  }
  return absl::OkStatus();
}

// Appends the parts of `axes` to `all`, all of which must stay independent.
absl::Status CollectParts(const Mesh* mesh, const AxisList* axes,
                          std::vector<const AxisPart*>& all) {
  if (!IsAligned(axes)) return Bad("a list of axes is not aligned");
  const int64_t count = SizeOrZero(axes);
  if (count == 0) return absl::OkStatus();
  if (mesh == nullptr) return Bad("an axis is named, but there is no mesh");
  if (count > kMaxRank) return Bad(absl::StrCat(count, " axes in one list"));
  for (int64_t i = 0; i < count; ++i) {
    const AxisPart& part = *axes->Get(static_cast<unsigned>(i));
    const int64_t known = SizeOrZero(mesh->axes());
    if (part.axis() < 0 || part.axis() >= known)
      return Bad(absl::StrCat("axis ", part.axis(), " of ", known));
    const int64_t extent =
        mesh->axes()->Get(static_cast<unsigned>(part.axis()))->size();
    if (part.pre() < 1 || part.size() < 1 || part.pre() > extent ||
        part.size() > extent || extent % (part.pre() * part.size()) != 0) {
      return Bad(absl::StrCat("part (", part.pre(), ")", part.size(),
                              " of an axis of size ", extent));
    }
    for (const AxisPart* other : all) {
      if (!Independent(*other, part)) {
        return Bad(absl::StrCat("axis ", Show(*mesh, part), " meets axis ",
                                Show(*mesh, *other)));
      }
    }
    all.push_back(&part);
  }
  return absl::OkStatus();
}

absl::Status CheckDim(int64_t size, const DimShard& dim, int64_t local,
                      size_t index) {
  const std::string where = absl::StrCat("dimension ", index, ": ");
  if (SizeOrZero(dim.axes()) == 0) {
    if (local == size) return absl::OkStatus();
    return Bad(absl::StrCat(where, "it is whole, but has ", local, " of ", size,
                            " rows"));
  }
  const int64_t shards = GroupSize(dim.axes());
  int64_t covered;
  if (dim.block() < 0 ||
      __builtin_mul_overflow(dim.block(), shards, &covered) || covered < size) {
    return Bad(absl::StrCat(where, shards, " blocks of ", dim.block(),
                            " rows do not hold ", size));
  }
  if (local == dim.block()) return absl::OkStatus();
  return Bad(absl::StrCat(where, "expected a block of ", dim.block(),
                          " rows, found ", local));
}

}  // namespace

bool Independent(const AxisPart& a, const AxisPart& b) {
  if (a.axis() != b.axis() || a.size() == 1 || b.size() == 1) return true;
  return b.pre() % (a.pre() * a.size()) == 0 ||
         a.pre() % (b.pre() * b.size()) == 0;
}

absl::Status ValidateMesh(const Mesh* mesh) {
  if (mesh == nullptr) return absl::OkStatus();
  if (SizeOrZero(mesh->axes()) > kMaxRank)
    return Bad(absl::StrCat("mesh: more than ", kMaxRank, " axes"));
  std::set<std::string> names;
  int64_t size = 1;
  for (int64_t i = 0; i < SizeOrZero(mesh->axes()); ++i) {
    const MeshAxis& axis = *mesh->axes()->Get(static_cast<unsigned>(i));
    const std::string name = axis.name()->str();
    if (name.empty() || !names.insert(name).second)
      return Bad(absl::StrCat("mesh: an axis without a name, or two named '",
                              name, "'"));
    if (axis.size() < 1 || axis.size() > kMaxDevices ||
        size * axis.size() > kMaxDevices) {
      return Bad(absl::StrCat("mesh: axis '", name, "' of size ", axis.size(),
                              " gives none or more than ", kMaxDevices,
                              " devices"));
    }
    size *= axis.size();
  }
  const absl::Status status = CheckDeviceIds(*mesh, size);
  return status.ok() ? status : Bad(absl::StrCat("mesh: ", status.message()));
}

absl::StatusOr<int64_t> ValidateAxes(const Mesh* mesh, const AxisList* axes) {
  std::vector<const AxisPart*> all;
  PARTITA_RETURN_IF_ERROR(CollectParts(mesh, axes, all));
  return GroupSize(axes);
}

absl::StatusOr<int64_t> ValidateShard(const Mesh* mesh, const Shard* shard,
                                      const TensorType& type) {
  const std::vector<int64_t> local = ShapeOf(type);
  if (shard == nullptr) return *base::ElementCount(local);
  if (!IsAligned(shard->shape())) return Bad("a shape is not aligned");
  if (SizeOrZero(shard->shape()) != static_cast<int64_t>(local.size()) ||
      SizeOrZero(shard->dims()) != static_cast<int64_t>(local.size())) {
    return Bad(absl::StrCat("a shard of ", SizeOrZero(shard->shape()),
                            " dimensions, ", SizeOrZero(shard->dims()),
                            " of them described, for a tensor of ",
                            local.size()));
  }
  const std::vector<int64_t> shape = ToVector(shard->shape());
  if (!base::ByteCount(ToBase(type.dtype()), shape)) {
    return Bad(absl::StrCat("shape [", absl::StrJoin(shape, ","),
                            "] is negative or too big"));
  }
  std::vector<const AxisPart*> all;
  for (size_t i = 0; i < shape.size(); ++i) {
    const DimShard& dim = *shard->dims()->Get(static_cast<unsigned>(i));
    PARTITA_RETURN_IF_ERROR(CollectParts(mesh, dim.axes(), all));
    PARTITA_RETURN_IF_ERROR(CheckDim(shape[i], dim, local[i], i));
  }
  return *base::ElementCount(shape);
}

}  // namespace partita::program
