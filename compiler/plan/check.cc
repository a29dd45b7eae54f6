// Checks a plan as a whole, and refuses what the compiler does not support yet.
#include <algorithm>
#include <array>

#include "compiler/plan/glob.h"
#include "compiler/plan/names.h"
#include "compiler/plan/plan.h"
#include "compiler/plan/text.h"

namespace partita::plan {
namespace {

using absl::OkStatus;
using absl::Status;

Status Refuse(const Plan& plan, Location where, const std::string& message) {
  return absl::InvalidArgumentError(Where(plan, where) + ": " + message);
}

Status Refuse(const Plan& plan, Location where, const Status& status) {
  return status.ok() ? status
                     : Refuse(plan, where, std::string(status.message()));
}

Location FieldAt(const Plan& plan, const std::string& field) {
  const auto it = plan.fields.find(field);
  return it == plan.fields.end() ? Location() : it->second;
}

// Pairs of dimensions that share a tensor in every model that has both. Within
// one entry neither would have priority on a common axis. B and X, and
// dimensions of different layers, may share an axis: tokens move from batch to
// expert.
bool LieTogether(const std::string& a, const std::string& b) {
  static const char* const kPairs[] = {
      "BL", "BH", "BW", "BE", "BM", "BN", "BV", "LE", "LM", "LN", "LV",
      "HW", "HE", "HM", "WE", "WM", "EM", "EN", "EV", "EX", "MX"};
  for (const char* pair : kPairs)
    if ((a == std::string(1, pair[0]) && b == std::string(1, pair[1])) ||
        (b == std::string(1, pair[0]) && a == std::string(1, pair[1])))
      return true;
  return false;
}

Status CheckDimension(const Plan& plan, const ShardedDimension& sharded) {
  const std::vector<std::string>& names = KnownDimensions();
  if (std::find(names.begin(), names.end(), sharded.dimension) != names.end())
    return OkStatus();
  return Refuse(plan, sharded.where,
                "shard: expected a dimension (" + Join(names) + "), found " +
                    Quote(sharded.dimension) +
                    Suggest(sharded.dimension, names));
}

Status CheckShardedDimension(const Plan& plan,
                             const ShardedDimension& sharded) {
  if (Status status = CheckDimension(plan, sharded); !status.ok())
    return status;
  const std::string what = "shard " + Quote(sharded.dimension);
  if (sharded.axes.empty())
    return Refuse(plan, sharded.where,
                  what + ": expected at least one axis, found none");
  for (size_t i = 0; i < sharded.axes.size(); ++i) {
    Status status = CheckAxis(sharded.axes[i], plan.mesh);
    if (status.ok())
      status = CheckUnused(plan.mesh, sharded.axes[i],
                           {sharded.axes.begin(), sharded.axes.begin() + i},
                           "a dimension");
    if (!status.ok())
      return Refuse(plan, sharded.where,
                    what + ": " + std::string(status.message()));
  }
  return OkStatus();
}

// Checks that each dimension occurs once, and that no axis is used twice by
// dimensions that share a tensor.
Status CheckEntry(const Plan& plan, const Entry& entry) {
  for (const std::string& glob : entry.at)
    if (Status status = CheckGlob(glob); !status.ok())
      return Refuse(plan, entry.where, "at: " + std::string(status.message()));
  for (int stage : entry.stages)
    if (stage < 0 || stage >= kMostStages)
      return Refuse(plan, entry.where,
                    "stage: expected a number from 0 to " +
                        std::to_string(kMostStages - 1) + ", found " +
                        std::to_string(stage));
  if (entry.dimensions.empty())
    return Refuse(plan, entry.where,
                  "shard: expected a dimension and its axes, as M: tensor, "
                  "found none");
  for (size_t i = 0; i < entry.dimensions.size(); ++i) {
    const ShardedDimension& sharded = entry.dimensions[i];
    if (Status status = CheckShardedDimension(plan, sharded); !status.ok())
      return status;
    for (size_t j = 0; j < i; ++j) {
      const ShardedDimension& other = entry.dimensions[j];
      if (other.dimension == sharded.dimension)
        return Refuse(
            plan, sharded.where,
            "shard: expected each dimension once in an entry, found " +
                Quote(sharded.dimension) +
                " twice; give all its axes in one list");
      if (!LieTogether(other.dimension, sharded.dimension)) continue;
      for (const core::AxisRef& axis : sharded.axes)
        if (core::OverlapAny(axis, other.axes))
          return Refuse(
              plan, sharded.where,
              "shard: expected dimensions of one tensor to have different axes "
              "within an entry, found '" +
                  core::ToString(plan.mesh, axis) + "' for both " +
                  Quote(other.dimension) + " and " + Quote(sharded.dimension) +
                  "; put the one that is to keep the axis into an earlier "
                  "entry of its own");
    }
  }
  return OkStatus();
}

// Refuses an axis that a later entry gives to a dimension once more, after an
// entry for the whole model has given it.
Status CheckRepeated(const Plan& plan) {
  for (size_t i = 0; i < plan.shard.size(); ++i)
    for (const ShardedDimension& sharded : plan.shard[i].dimensions)
      for (size_t j = 0; j < i; ++j)
        for (const ShardedDimension& other : plan.shard[j].dimensions) {
          if (IsScoped(plan.shard[j]) || other.dimension != sharded.dimension)
            continue;
          for (const core::AxisRef& axis : sharded.axes)
            if (core::OverlapAny(axis, other.axes))
              return Refuse(plan, sharded.where,
                            "shard " + Quote(sharded.dimension) +
                                ": expected each axis once for a dimension, "
                                "found '" +
                                core::ToString(plan.mesh, axis) +
                                "' here and in entry " + std::to_string(j + 1) +
                                "; leave out one of the two");
        }
  return OkStatus();
}

// True if a single split of the axis contains both parts, i.e. the positions
// where they begin and end divide one another. Of six positions, (1)2 splits
// them 2 x 3, and (3)2 splits them 3 x 2.
bool HaveCommonSplit(const core::AxisRef& a, const core::AxisRef& b) {
  if (a.axis != b.axis) return true;
  std::array<int64_t, 4> places = {a.pre, a.pre * a.size, b.pre,
                                   b.pre * b.size};
  std::sort(places.begin(), places.end());
  for (size_t i = 1; i < places.size(); ++i)
    if (places[i] % places[i - 1] != 0) return false;
  return true;
}

// Refuses parts of one axis that need different splits: devices along an axis
// have only one set of coordinates.
Status CheckParts(const Plan& plan) {
  std::vector<core::AxisRef> parts;
  const auto add = [&](const std::vector<core::AxisRef>& axes,
                       Location where) -> Status {
    for (const core::AxisRef& axis : axes) {
      for (const core::AxisRef& other : parts)
        if (!HaveCommonSplit(axis, other))
          return Refuse(plan, where,
                        "expected parts of axis " +
                            Quote(plan.mesh.axes[axis.axis].name) +
                            " that fit one split of its " +
                            std::to_string(plan.mesh.axes[axis.axis].size) +
                            " positions, found " +
                            Quote(core::ToString(plan.mesh, axis)) + " and " +
                            Quote(core::ToString(plan.mesh, other)) +
                            "; give each part its own axis in the mesh");
      parts.push_back(axis);
    }
    return OkStatus();
  };
  for (const Entry& entry : plan.shard)
    for (const ShardedDimension& sharded : entry.dimensions)
      if (Status status = add(sharded.axes, sharded.where); !status.ok())
        return status;
  for (const Override& override : plan.overrides) {
    std::vector<core::AxisRef> axes = override.sharding.replicated;
    axes.insert(axes.end(), override.sharding.unreduced.begin(),
                override.sharding.unreduced.end());
    for (const core::DimSharding& dim : override.sharding.dims)
      axes.insert(axes.end(), dim.axes.begin(), dim.axes.end());
    if (Status status = add(axes, override.where); !status.ok()) return status;
  }
  return OkStatus();
}

// Refuses axes of D for any other dimension: devices along D run different
// layers.
Status CheckDepth(const Plan& plan) {
  for (const Entry& deep : plan.shard)
    for (const ShardedDimension& depth : deep.dimensions) {
      if (depth.dimension != "D") continue;
      if (IsScoped(deep))
        return Refuse(plan, depth.where,
                      "shard: expected 'D' in an entry for the whole model, "
                      "found it under '" +
                          std::string(deep.at.empty() ? "stage" : "at") +
                          "'; stages says which layers go where");
      for (const Entry& entry : plan.shard)
        for (const ShardedDimension& sharded : entry.dimensions)
          for (const core::AxisRef& axis : sharded.axes)
            if (sharded.dimension != "D" && core::OverlapAny(axis, depth.axes))
              return Refuse(plan, sharded.where,
                            "shard: expected axis '" +
                                core::ToString(plan.mesh, axis) +
                                "' to be of 'D' alone, whose devices run "
                                "different layers, found it for " +
                                Quote(sharded.dimension) + " too");
    }
  return OkStatus();
}

Status CheckStages(const Plan& plan) {
  int64_t devices = plan.mesh.Size();
  for (const Entry& entry : plan.shard)
    for (const ShardedDimension& sharded : entry.dimensions)
      if (sharded.dimension == "D") devices /= core::SizeOf(sharded.axes);
  for (size_t i = 0; i < plan.stages.size(); ++i) {
    const Stage& stage = plan.stages[i];
    if (Status status = CheckGlob(stage.to); !status.ok())
      return Refuse(plan, stage.where, status);
    if (!stage.mesh.has_value()) continue;
    if (Status status = CheckMesh(*stage.mesh); !status.ok())
      return Refuse(plan, stage.where, status);
    // If every stage has a mesh, the plan's mesh need not match.
    if (i == 0 &&
        std::all_of(plan.stages.begin(), plan.stages.end(),
                    [](const Stage& s) { return s.mesh.has_value(); }))
      devices = stage.mesh->Size();
    if (stage.mesh->Size() != devices)
      return Refuse(plan, stage.where,
                    "stages: expected " + std::to_string(devices) +
                        " devices, as every stage has, found " +
                        std::to_string(stage.mesh->Size()) + " in mesh " +
                        ToString(*stage.mesh));
  }
  return OkStatus();
}

Status CheckOverride(const Plan& plan, const Override& override) {
  if (Status status = CheckGlob(override.tensor); !status.ok())
    return Refuse(plan, override.where, status);
  std::vector<core::AxisRef> used;
  std::vector<core::AxisRef> all = override.sharding.replicated;
  for (const core::AxisRef& axis : override.sharding.unreduced)
    all.push_back(axis);
  for (const core::DimSharding& dim : override.sharding.dims)
    all.insert(all.end(), dim.axes.begin(), dim.axes.end());
  for (const core::AxisRef& axis : all) {
    Status status = CheckAxis(axis, plan.mesh);
    if (status.ok()) status = CheckUnused(plan.mesh, axis, used, "a sharding");
    if (!status.ok()) return Refuse(plan, override.where, status);
    for (const Entry& entry : plan.shard)
      for (const ShardedDimension& sharded : entry.dimensions)
        if (sharded.dimension == "D" && core::OverlapAny(axis, sharded.axes))
          return Refuse(plan, override.where,
                        "overrides: expected axes that divide tensors, found "
                        "'" +
                            core::ToString(plan.mesh, axis) +
                            "', which is of 'D': devices along it have "
                            "different tensors");
    used.push_back(axis);
  }
  return OkStatus();
}

Status CheckNumbers(const Plan& plan) {
  const auto check = [&](const char* field, int64_t value, int64_t least,
                         int64_t most) {
    if (least <= value && value <= most) return OkStatus();
    return Refuse(plan, FieldAt(plan, field),
                  std::string(field) + ": expected a number from " +
                      std::to_string(least) + " to " + std::to_string(most) +
                      ", found " + std::to_string(value));
  };
  if (Status status = check("zero", plan.zero, 0, 3); !status.ok())
    return status;
  if (Status status = check("microbatches", plan.microbatches, 1, 1 << 20);
      !status.ok())
    return status;
  for (size_t i = 0; i < plan.budgets.size(); ++i) {
    const Budget& budget = plan.budgets[i];
    const std::vector<std::string>& kinds = BudgetKinds();
    if (std::find(kinds.begin(), kinds.end(), budget.kind) == kinds.end())
      return Refuse(plan, budget.where,
                    "budgets: expected " + Join(kinds) + ", found " +
                        Quote(budget.kind) + Suggest(budget.kind, kinds));
    if (budget.bytes < 0)
      return Refuse(plan, budget.where,
                    "budgets: expected at least 0 bytes, found " +
                        std::to_string(budget.bytes));
  }
  return OkStatus();
}

}  // namespace

Status CheckPlan(const Plan& plan) {
  if (Status status = CheckMesh(plan.mesh); !status.ok())
    return Refuse(plan, FieldAt(plan, "mesh"), status);
  for (const Name& name : plan.names) {
    Status status = CheckGlob(name.tensor);
    if (status.ok()) status = CheckDimensionName(name.dimension);
    if (!status.ok())
      return Refuse(plan, name.where,
                    "names: " + std::string(status.message()));
  }
  for (const Entry& entry : plan.shard)
    if (Status status = CheckEntry(plan, entry); !status.ok()) return status;
  if (Status status = CheckRepeated(plan); !status.ok()) return status;
  if (Status status = CheckDepth(plan); !status.ok()) return status;
  if (Status status = CheckStages(plan); !status.ok()) return status;
  for (const Override& override : plan.overrides)
    if (Status status = CheckOverride(plan, override); !status.ok())
      return status;
  if (Status status = CheckParts(plan); !status.ok()) return status;
  for (const Recompute& rule : plan.recompute)
    for (const std::string& glob : rule.at)
      if (Status status = CheckGlob(glob); !status.ok())
        return Refuse(plan, rule.where, status);
  return CheckNumbers(plan);
}

bool HoldsIn(const Entry& entry, int stage) {
  return entry.stages.empty() ||
         std::find(entry.stages.begin(), entry.stages.end(), stage) !=
             entry.stages.end();
}

Status CheckDeviceCount(const Plan& plan, int64_t devices) {
  if (plan.mesh.Size() == devices) return OkStatus();
  const auto mesh = plan.fields.find("mesh");
  return absl::InvalidArgumentError(
      "--devices: expected the " + std::to_string(plan.mesh.Size()) +
      " devices of the mesh " + ToString(plan.mesh) + " (" +
      (mesh == plan.fields.end() ? "--mesh" : Where(plan, mesh->second)) +
      "), found " + std::to_string(devices) + "; change one of the two");
}

}  // namespace partita::plan
