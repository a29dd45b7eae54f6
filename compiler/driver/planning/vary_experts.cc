// Takes the entry of X out of a plan, and writes another one.
#include "compiler/driver/planning/vary_experts.h"

#include <algorithm>
#include <set>
#include <utility>

#include "compiler/planner/search/write_plan.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::driver {
namespace {

using plan::Plan;

constexpr char kData[] = "data", kExpert[] = "expert", kTensor[] = "tensor";

int64_t sizeOf(const Plan& plan, const char* axis) {
  const int index = plan.mesh.Find(axis);
  return index < 0 ? 1 : plan.mesh.axes[index].size;
}

bool hasWholeAxes(const Plan& plan) {
  return plan.overrides.empty() &&
         llvm::all_of(plan.shard, [&](const plan::Entry& entry) {
           return llvm::all_of(entry.dimensions, [&](const auto& each) {
             return llvm::all_of(each.axes, [&](const core::AxisRef& ref) {
               return ref.pre == 1 && ref.size == plan.mesh.axes[ref.axis].size;
             });
           });
         });
}

void removeExperts(Plan& plan) {
  for (plan::Entry& entry : plan.shard)
    llvm::erase_if(entry.dimensions, [](const plan::ShardedDimension& each) {
      return each.dimension == "X";
    });
  llvm::erase_if(plan.shard, [](const plan::Entry& entry) {
    return entry.dimensions.empty();
  });
}

// Gives the axes `data` and `expert` these sizes. They divide the batch
// together; an axis of size 1 is left out.
void setDataAxes(Plan& plan, int64_t data, int64_t expert) {
  core::Mesh mesh = plan.mesh;
  mesh.axes.clear();
  bool is_added = false;
  for (const core::Axis& axis : plan.mesh.axes) {
    if (axis.name != kData && axis.name != kExpert) {
      mesh.axes.push_back(axis);
      continue;
    }
    if (is_added) continue;
    is_added = true;
    if (data > 1) mesh.axes.push_back({kData, data});
    if (expert > 1) mesh.axes.push_back({kExpert, expert});
  }
  for (plan::Entry& entry : plan.shard)
    for (plan::ShardedDimension& each : entry.dimensions) {
      std::vector<core::AxisRef> axes;
      bool has_data = false;
      for (const core::AxisRef& ref : each.axes) {
        const std::string& name = plan.mesh.axes[ref.axis].name;
        if (name != kData && name != kExpert) {
          axes.push_back(core::WholeAxis(mesh, mesh.Find(name)));
          continue;
        }
        if (has_data) continue;
        has_data = true;
        for (const char* part : {kData, kExpert})
          if (const int axis = mesh.Find(part); axis >= 0)
            axes.push_back(core::WholeAxis(mesh, axis));
      }
      each.axes = std::move(axes);
    }
  plan.mesh = std::move(mesh);
}

Plan withExperts(const Plan& from, int64_t over_data, bool over_tensor) {
  Plan plan = from;
  removeExperts(plan);
  plan.experts.reset();
  if (over_data > 1) plan.experts = planner::BoundedRows();
  const int64_t data = sizeOf(plan, kData) * sizeOf(plan, kExpert);
  const bool all = over_data == data;
  if (data > 1)
    setDataAxes(plan, all ? data : data / over_data, all ? 1 : over_data);
  plan::ShardedDimension experts;
  experts.dimension = "X";
  if (over_data > 1)
    experts.axes.push_back(
        core::WholeAxis(plan.mesh, plan.mesh.Find(all ? kData : kExpert)));
  if (over_tensor)
    experts.axes.push_back(core::WholeAxis(plan.mesh, plan.mesh.Find(kTensor)));
  if (!experts.axes.empty()) {
    plan::Entry entry;
    entry.dimensions.push_back(std::move(experts));
    // Before entries that divide widths over the same axis: the first one gets
    // it.
    const auto divides = [](const plan::Entry& other, const char* name) {
      return llvm::any_of(other.dimensions, [&](const auto& each) {
        return each.dimension == name;
      });
    };
    plan.shard.insert(llvm::find_if(plan.shard,
                                    [&](const plan::Entry& other) {
                                      return divides(other, "M");
                                    }),
                      std::move(entry));
  }
  return plan;
}

}  // namespace

std::vector<Plan> expertsOtherwise(const Plan& plan, int64_t experts,
                                   const planner::FixedChoices& fixed) {
  std::vector<Plan> made;
  if (experts == 0 || fixed.ep || !hasWholeAxes(plan)) return made;
  const int64_t data = sizeOf(plan, kData) * sizeOf(plan, kExpert);
  const int64_t tensor = sizeOf(plan, kTensor);
  int64_t over_data = 1;
  for (const plan::Entry& entry : plan.shard)
    for (const plan::ShardedDimension& each : entry.dimensions)
      for (const core::AxisRef& ref : each.axes)
        if (each.dimension == "X" && plan.mesh.axes[ref.axis].name != kTensor)
          over_data *= ref.size;
  for (const int64_t parts :
       std::set<int64_t>{1, over_data / 2, over_data, over_data * 2, data}) {
    if (parts < 1 || data % parts != 0) continue;
    for (const bool over_tensor : {false, true}) {
      if (over_tensor && tensor == 1) continue;
      if (experts % (parts * (over_tensor ? tensor : 1)) != 0) continue;
      Plan changed = withExperts(plan, parts, over_tensor);
      if (plan::WritePlan(changed) != plan::WritePlan(plan))
        made.push_back(std::move(changed));
    }
  }
  return made;
}

}  // namespace partita::driver
