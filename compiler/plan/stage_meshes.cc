// Expresses each axis of a stage's mesh as parts of the axes of the plan's
// mesh.
#include <algorithm>
#include <map>
#include <string>

#include "compiler/plan/plan_schedule.h"
#include "compiler/plan/text.h"

namespace partita::plan {
namespace {

using absl::OkStatus;
using absl::Status;
using absl::StatusOr;
using Axes = std::vector<core::AxisRef>;

Status Refuse(const Plan& plan, Location where, const std::string& message) {
  return absl::InvalidArgumentError(Where(plan, where) + ": " + message);
}

// For each axis of the plan's mesh, by index: its meaning in a stage, as parts
// of the plan's axes. Axes absent from the stage's mesh have none (one
// position).
using Meaning = std::map<int, Axes>;

class Stages {
 public:
  explicit Stages(const Plan& plan) : plan_(plan) {}

  Status Read() {
    for (const core::AxisRef& axis : DepthAxes(plan_)) {
      if (axis != core::WholeAxis(plan_.mesh, axis.axis))
        return Refuse(plan_, plan_.stages.front().where,
                      "stages mesh: expected D to have whole axes, found " +
                          Quote(core::ToString(plan_.mesh, axis)) +
                          "; give its parts names in the plan's mesh");
      depth_.push_back(axis.axis);
    }
    for (const Stage& stage : plan_.stages) {
      meanings_.emplace_back();
      if (!stage.mesh.has_value()) continue;
      if (Status status = ReadStage(stage, meanings_.back()); !status.ok())
        return status;
    }
    return OkStatus();
  }

  // The sharding of the same dimension in `stage`. It has no axes if they have
  // only one position there.
  StatusOr<ShardedDimension> InStage(const ShardedDimension& sharded,
                                     size_t stage) const {
    if (!plan_.stages[stage].mesh.has_value()) return sharded;
    ShardedDimension changed = sharded;
    changed.axes.clear();
    for (const core::AxisRef& axis : sharded.axes) {
      const Axes& meant = meanings_[stage].at(axis.axis);
      const core::AxisRef whole = core::WholeAxis(plan_.mesh, axis.axis);
      const bool is_same = meant == Axes{whole};
      if (!is_same && axis != whole)
        return Refuse(plan_, sharded.where,
                      "shard " + Quote(sharded.dimension) +
                          ": expected a whole axis, as a mesh of stage " +
                          std::to_string(stage) + " makes another of it (" +
                          Where(plan_, plan_.stages[stage].where) +
                          "), found " +
                          Quote(core::ToString(plan_.mesh, axis)));
      if (is_same)
        changed.axes.push_back(axis);
      else
        changed.axes.insert(changed.axes.end(), meant.begin(), meant.end());
    }
    return changed;
  }

 private:
  bool IsDepth(int axis) const {
    return std::find(depth_.begin(), depth_.end(), axis) != depth_.end();
  }

  Status ReadStage(const Stage& stage, Meaning& meaning) {
    const auto refuse = [&](const std::string& what) {
      return Refuse(plan_, stage.where, "stages mesh: " + what);
    };
    if (!stage.mesh->device_ids.empty())
      return refuse(
          "expected the devices of a stage in order, found device_ids; order "
          "them in the plan's mesh");
    std::vector<std::string> names;
    int64_t devices = 1;
    free_.clear();
    for (size_t i = 0; i < plan_.mesh.axes.size(); ++i) {
      const int axis = static_cast<int>(i);
      if (IsDepth(axis)) continue;
      names.push_back(plan_.mesh.axes[i].name);
      devices *= plan_.mesh.axes[i].size;
      free_.push_back(core::WholeAxis(plan_.mesh, axis));
      meaning[axis] = {};
    }
    if (stage.mesh->Size() != devices)
      return refuse("expected " + std::to_string(devices) +
                    " devices, as the plan's mesh has for a stage, found " +
                    std::to_string(stage.mesh->Size()) + " in " +
                    ToString(*stage.mesh));
    for (const core::Axis& axis : stage.mesh->axes) {
      const auto named = std::find(names.begin(), names.end(), axis.name);
      if (named == names.end())
        return refuse("expected axes of the plan's mesh without those of D (" +
                      Join(names) + "), found " + Quote(axis.name) +
                      Suggest(axis.name, names) +
                      "; one that other stages lack is of size 1 there");
      const auto place = std::find_if(
          plan_.mesh.axes.begin(), plan_.mesh.axes.end(),
          [&](const core::Axis& other) { return other.name == axis.name; });
      if (!Take(axis.size,
                meaning[static_cast<int>(place - plan_.mesh.axes.begin())]))
        return refuse("expected axes that parts of the plan's " +
                      ToString(plan_.mesh) + " make up, found " +
                      ToString(*stage.mesh) + ", whose '" + axis.name +
                      "' begins or ends within a part");
    }
    return OkStatus();
  }

  // Takes the next `size` positions from the free axes. False if `size` is not
  // a product of whole axes and parts of them.
  bool Take(int64_t size, Axes& axes) {
    while (size > 1) {
      core::AxisRef& next = free_.front();
      if (size % next.size == 0) {
        size /= next.size;
        if (next.size > 1) axes.push_back(next);
        free_.erase(free_.begin());
      } else if (next.size % size == 0) {
        core::AxisRef part = next;
        part.size = size;
        axes.push_back(part);
        next.pre *= size;
        next.size /= size;
        return true;
      } else {
        return false;
      }
    }
    return true;
  }

  const Plan& plan_;
  std::vector<int> depth_;
  std::vector<Meaning> meanings_;  // [stage]; empty without a mesh
  Axes free_;                      // axes not yet taken in the stage being read
};

bool AreSame(const std::vector<ShardedDimension>& a,
             const std::vector<ShardedDimension>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const ShardedDimension& x, const ShardedDimension& y) {
                      return x.dimension == y.dimension && x.axes == y.axes;
                    });
}

// Adds one entry for each set of stages in which `entry` means the same.
Status AddEntries(const Plan& plan, const Stages& stages, const Entry& entry,
                  std::vector<Entry>& entries) {
  std::vector<Entry> made;
  for (size_t stage = 0; stage < plan.stages.size(); ++stage) {
    if (!HoldsIn(entry, static_cast<int>(stage))) continue;
    Entry own = entry;
    own.dimensions.clear();
    own.stages = {static_cast<int>(stage)};
    for (const ShardedDimension& sharded : entry.dimensions) {
      if (sharded.dimension == "D") continue;
      StatusOr<ShardedDimension> changed = stages.InStage(sharded, stage);
      if (!changed.ok()) return changed.status();
      if (!changed->axes.empty()) own.dimensions.push_back(*std::move(changed));
    }
    if (own.dimensions.empty()) continue;
    const auto same =
        std::find_if(made.begin(), made.end(), [&](const Entry& other) {
          return AreSame(other.dimensions, own.dimensions);
        });
    if (same == made.end())
      made.push_back(std::move(own));
    else
      same->stages.push_back(static_cast<int>(stage));
  }
  entries.insert(entries.end(), made.begin(), made.end());
  return OkStatus();
}

}  // namespace

StatusOr<Plan> DivideStages(const Plan& plan) {
  if (std::none_of(plan.stages.begin(), plan.stages.end(),
                   [](const Stage& stage) { return stage.mesh.has_value(); }))
    return plan;
  if (!plan.overrides.empty())
    return Refuse(plan, plan.overrides[0].where,
                  "overrides: expected none where stages have meshes of their "
                  "own, since axes mean other devices in each; found one of '" +
                      plan.overrides[0].tensor +
                      "'; say it in shard, with at:");
  Stages stages(plan);
  if (Status status = stages.Read(); !status.ok()) return status;
  Plan divided = plan;
  divided.shard.clear();
  for (const Entry& entry : plan.shard) {
    Entry depth = entry;
    depth.dimensions.clear();
    for (const ShardedDimension& sharded : entry.dimensions)
      if (sharded.dimension == "D") depth.dimensions.push_back(sharded);
    if (!depth.dimensions.empty()) divided.shard.push_back(std::move(depth));
    if (Status status = AddEntries(plan, stages, entry, divided.shard);
        !status.ok())
      return status;
  }
  for (Stage& stage : divided.stages) stage.mesh.reset();
  if (Status status = CheckPlan(divided); !status.ok()) return status;
  return divided;
}

}  // namespace partita::plan
