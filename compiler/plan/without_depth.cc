// Removes D from entries and its axes from the mesh.
#include "compiler/plan/without_depth.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "compiler/plan/plan_schedule.h"

namespace partita::plan {

void RemoveAxis(Plan& plan, int axis) {
  plan.mesh.axes.erase(plan.mesh.axes.begin() + axis);
  for (Entry& entry : plan.shard) {
    for (ShardedDimension& each : entry.dimensions) {
      each.axes.erase(std::remove_if(each.axes.begin(), each.axes.end(),
                                     [&](const core::AxisRef& ref) {
                                       return ref.axis == axis;
                                     }),
                      each.axes.end());
      for (core::AxisRef& ref : each.axes)
        if (ref.axis > axis) --ref.axis;
    }
    entry.dimensions.erase(
        std::remove_if(
            entry.dimensions.begin(), entry.dimensions.end(),
            [](const ShardedDimension& each) { return each.axes.empty(); }),
        entry.dimensions.end());
  }
  plan.shard.erase(std::remove_if(plan.shard.begin(), plan.shard.end(),
                                  [](const Entry& entry) {
                                    return entry.dimensions.empty();
                                  }),
                   plan.shard.end());
}

void ResizeAxis(Plan& plan, int axis, int64_t size) {
  if (size == 1) {
    RemoveAxis(plan, axis);
    return;
  }
  plan.mesh.axes[static_cast<size_t>(axis)].size = size;
  for (Entry& entry : plan.shard)
    for (ShardedDimension& each : entry.dimensions)
      for (core::AxisRef& ref : each.axes)
        if (ref.axis == axis) ref.size = size;
}

Plan WithoutDepth(Plan plan) {
  std::vector<int> axes;
  for (const core::AxisRef& ref : DepthAxes(plan))
    if (ref.pre == 1 && ref.size == plan.mesh.axes[ref.axis].size)
      axes.push_back(ref.axis);
  for (Entry& entry : plan.shard)
    entry.dimensions.erase(
        std::remove_if(
            entry.dimensions.begin(), entry.dimensions.end(),
            [](const ShardedDimension& each) { return each.dimension == "D"; }),
        entry.dimensions.end());
  plan.shard.erase(std::remove_if(plan.shard.begin(), plan.shard.end(),
                                  [](const Entry& entry) {
                                    return entry.dimensions.empty() ||
                                           !entry.stages.empty();
                                  }),
                   plan.shard.end());
  std::sort(axes.begin(), axes.end(), std::greater<int>());
  for (int axis : axes) RemoveAxis(plan, axis);
  if (plan.mesh.axes.empty()) plan.mesh.axes.push_back({"data", 1});
  plan.schedule.reset();
  plan.stages.clear();
  plan.memory.reset();
  plan.budgets.clear();
  plan.fields.clear();
  return plan;
}

}  // namespace partita::plan
