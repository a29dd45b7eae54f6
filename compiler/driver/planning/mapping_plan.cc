// Builds the plan from texts, as --mesh and --shard have them.
#include "compiler/driver/planning/mapping_plan.h"

#include <string>
#include <utility>

namespace partita::driver {

absl::StatusOr<plan::Plan> planOf(const planner::StepMapping& mapping, int data,
                                  int tensor) {
  plan::Plan plan;
  plan.origin = "the planner";
  std::string axes, batch;
  if (data > 1 || tensor == 1) {
    axes = "data=" + std::to_string(data);
    batch = "B=data";
  }
  if (tensor > 1)
    axes += std::string(axes.empty() ? "" : ",") +
            "tensor=" + std::to_string(tensor);
  absl::StatusOr<core::Mesh> mesh = plan::ParseMeshOption(axes);
  if (!mesh.ok()) return mesh.status();
  plan.mesh = *std::move(mesh);
  std::string text = batch;
  if (tensor > 1 && mapping.of_batch)
    text += batch.empty() ? "B=tensor" : "+tensor";
  if (tensor > 1 && !mapping.of_batch)
    for (const std::string& name : mapping.names)
      text += std::string(&name != &mapping.names.front() ? ","
                          : text.empty()                  ? ""
                                                          : ";") +
              name + "=tensor";
  if (text.empty()) return plan;
  absl::StatusOr<std::vector<plan::Entry>> shard =
      plan::ParseShardOption(text, plan.mesh);
  if (!shard.ok()) return shard.status();
  plan.shard = *std::move(shard);
  return plan;
}

}  // namespace partita::driver
