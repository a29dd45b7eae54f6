// Writes a division as a plan that a person could have written.
#include "compiler/planner/search/write_plan.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <vector>

#include "compiler/plan/text.h"
#include "compiler/planner/layers/layer_names.h"

namespace partita::planner {
namespace {

using absl::InvalidArgumentError;
using absl::StatusOr;
using core::Precision;

std::string MeshText(const Division& d) {
  std::string text;
  const auto add = [&](const char* axis, int size) {
    if (size == 1) return;
    text += (text.empty() ? "" : ",") + std::string(axis) + "=" +
            std::to_string(size);
  };
  add("pipe", d.pp);
  const int over = d.experts_over_data();
  if (over == d.dp) {
    add("data", d.dp);
  } else {
    add("data", d.dp / over);
    add("expert", over);
  }
  add("context", d.cp);
  add("tensor", d.tp);
  // A single device also needs a mesh.
  return text.empty() ? "data=1" : text;
}

std::string ShardText(const Division& d, const PlanNames& names) {
  std::vector<std::string> entries;
  std::string outer;
  const int over = d.experts_over_data();
  const bool part = over > 1 && over < d.dp;  // has an axis of its own
  if (d.dp > 1 || d.devices == 1) outer = part ? "B=data+expert" : "B=data";
  if (d.pp > 1) outer += std::string(outer.empty() ? "" : ",") + "D=pipe";
  if (!outer.empty()) entries.push_back(outer);
  if (d.ep > 1) {
    const std::string data = part ? "expert" : over > 1 ? "data" : "";
    const std::string tensor = d.etp < d.tp ? "tensor" : "";
    entries.push_back("X=" + data +
                      (data.empty() || tensor.empty() ? "" : "+") + tensor);
  }
  if (d.cp > 1) entries.push_back("L=context");
  if (d.tp > 1) entries.push_back("M=tensor,N=tensor,V=tensor");
  if (d.tp > 1 && d.sequence_parallel && names.sequence)
    entries.push_back("L=tensor");
  std::string text;
  for (const std::string& entry : entries)
    text += (text.empty() ? "" : ";") + entry;
  return text;
}

plan::Schedule ScheduleOf(const Division& d) {
  plan::Schedule schedule;
  schedule.kind = KindOf(d.schedule);
  if (schedule.kind == plan::ScheduleKind::k1F1B && d.vpp > 1)
    schedule.kind = plan::ScheduleKind::kInterleaved;
  if (schedule.kind == plan::ScheduleKind::kInterleaved)
    schedule.chunks = d.vpp;
  return schedule;
}

// f32 is a plan's default.
std::optional<Precision> PrecisionOf(Precision precision) {
  if (precision == Precision::kF32) return std::nullopt;
  return precision;
}

// The entry of a mapping: its names over `axis`, if some of the layers have
// them.
plan::Entry EntryOf(const StepMapping& mapping, const std::set<int>& layers,
                    const StepGraph& step, const core::AxisRef& axis) {
  plan::Entry entry;
  for (const std::string& name : mapping.names)
    if (std::any_of(layers.begin(), layers.end(), [&](int layer) {
          return step.dims[layer].count(name) > 0;
        }))
      entry.dimensions.push_back({name, {axis}, {}});
  // Layers without dimensions to divide need no entry.
  std::set<std::string> names, all;
  for (size_t i = 0; i < step.layers.size(); ++i) {
    if (step.dims[i].empty()) continue;
    all.insert(step.layers[i]);
    if (layers.count(static_cast<int>(i)) > 0) names.insert(step.layers[i]);
  }
  if (names.size() < all.size()) entry.at = PatternsOf(names, all);
  return entry;
}

// Checks a time in sbatch's syntax: minutes, MM:SS, HH:MM:SS, or DAYS- followed
// by hours or by one of the latter.
bool IsTime(const std::string& text) {
  const size_t hyphen = text.find('-');
  const bool days = hyphen != std::string::npos;
  std::vector<std::string> parts =
      plan::SplitOutside(days ? text.substr(hyphen + 1) : text, ':');
  if (parts.size() > 3) return false;
  if (days) parts.push_back(text.substr(0, hyphen));
  return std::all_of(parts.begin(), parts.end(), [](const std::string& part) {
    return plan::ParseCount(part).ok();
  });
}

}  // namespace

plan::RecomputePolicy PolicyOf(Recomputation recompute) {
  switch (recompute) {
    case Recomputation::kNone:
      return plan::RecomputePolicy::kNone;
    case Recomputation::kFull:
      return plan::RecomputePolicy::kFull;
    case Recomputation::kSelective:
      break;
  }
  return plan::RecomputePolicy::kSelective;
}

plan::ScheduleKind KindOf(PipelineSchedule schedule) {
  switch (schedule) {
    case PipelineSchedule::kGpipe:
      return plan::ScheduleKind::kGpipe;
    case PipelineSchedule::kZbH1:
      return plan::ScheduleKind::kZbH1;
    case PipelineSchedule::kZbV:
      return plan::ScheduleKind::kZbV;
    case PipelineSchedule::k1F1B:
      break;
  }
  return plan::ScheduleKind::k1F1B;
}

StatusOr<plan::Plan> PlanOfLayers(const StepGraph& step,
                                  const LayerTable& table,
                                  const LayerDivision& division,
                                  Precision precision) {
  plan::Plan plan;
  plan.origin = "the planner";
  // If all mappings divide the batch, one axis is enough.
  const bool plain =
      table.inner == 1 ||
      std::all_of(division.mappings.begin(), division.mappings.end(),
                  [&](int mapping) { return step.mappings[mapping].of_batch; });
  const int batch_parts = plain ? table.data * table.inner : table.data;
  if (plain || batch_parts > 1) {
    plan.mesh.axes.push_back({"data", batch_parts});
    plan::Entry batch;
    batch.dimensions.push_back({"B", {core::WholeAxis(plan.mesh, 0)}, {}});
    plan.shard.push_back(batch);
  }
  if (!plain) plan.mesh.axes.push_back({"tensor", table.inner});
  const int last = static_cast<int>(plan.mesh.axes.size()) - 1;
  for (size_t m = 0; m < step.mappings.size() && !plain; ++m) {
    std::set<int> layers;
    for (size_t i = 0; i < division.mappings.size(); ++i)
      if (division.mappings[i] == static_cast<int>(m))
        layers.insert(static_cast<int>(i));
    if (layers.empty()) continue;
    plan::Entry entry = EntryOf(step.mappings[m], layers, step,
                                core::WholeAxis(plan.mesh, last));
    if (!entry.dimensions.empty()) plan.shard.push_back(std::move(entry));
  }
  plan.precision = PrecisionOf(precision);
  if (absl::Status status = plan::CheckPlan(plan); !status.ok()) return status;
  return plan;
}

plan::Experts BoundedRows() { return {std::nullopt, 2.0}; }

StatusOr<plan::Plan> PlanOf(const Architecture& architecture, const Division& d,
                            const PlanNames& names) {
  if (architecture.experts > 0 &&
      ((d.etp != 1 && d.etp != d.tp) ||
       d.experts_over_data() * d.tp != d.ep * d.etp ||
       d.dp % d.experts_over_data() != 0))
    return InvalidArgumentError(
        "ep, etp: expected experts over whole axes of a plan: etp 1 or the tp "
        "of " +
        std::to_string(d.tp) + ", and ep a divisor of the dp of " +
        std::to_string(d.dp) + ", times tp with etp 1; found ep " +
        std::to_string(d.ep) + " and etp " + std::to_string(d.etp));
  plan::Plan plan;
  plan.origin = "the planner";
  StatusOr<core::Mesh> mesh = plan::ParseMeshOption(MeshText(d));
  if (!mesh.ok()) return mesh.status();
  plan.mesh = *std::move(mesh);
  StatusOr<std::vector<plan::Entry>> shard =
      plan::ParseShardOption(ShardText(d, names), plan.mesh);
  if (!shard.ok()) return shard.status();
  plan.shard = *std::move(shard);
  // ZeRO divides over the axes of B. Without dp there are none.
  plan.zero = d.dp > 1 ? d.zero : 0;
  if (d.offload) plan.offload = plan::Offload::kOptimizer;
  plan.microbatches = d.microbatches();
  if (d.pp > 1) {
    plan.schedule = ScheduleOf(d);
    // Without a list, the compiler cuts; it sees more than layers.
    int64_t end = 0;
    for (int64_t layers : d.cut) {
      end += layers;
      plan.stages.push_back({names.layer + std::to_string(end - 1), {}, {}});
    }
  }
  if (PolicyOf(d.recompute) != plan::RecomputePolicy::kSelective) {
    plan::Recompute recompute;
    recompute.policy = PolicyOf(d.recompute);
    plan.recompute = {recompute};
  }
  plan.precision = PrecisionOf(d.precision);
  if (d.experts_over_data() > 1) plan.experts = BoundedRows();
  if (absl::Status status = plan::CheckPlan(plan); !status.ok()) return status;
  return plan;
}

absl::Status CheckSlurm(const SlurmOptions& options) {
  if (!options.time.empty() && !IsTime(options.time))
    return InvalidArgumentError(
        "--time: expected minutes, HH:MM:SS or DAYS-HH:MM:SS, found " +
        plan::Quote(options.time));
  for (const char c : options.account)
    if (!std::isgraph(static_cast<unsigned char>(c)))
      return InvalidArgumentError(
          "--account: expected a name without spaces, "
          "found " +
          plan::Quote(options.account));
  return absl::OkStatus();
}

StatusOr<std::string> SlurmScript(const plan::Plan& plan,
                                  const Cluster& cluster,
                                  const std::string& artifact,
                                  const SlurmOptions& options) {
  if (absl::Status status = CheckSlurm(options); !status.ok()) return status;
  const int64_t devices = plan.mesh.Size();
  if (devices > cluster.devices)
    return InvalidArgumentError(
        "expected a plan for at most the " + std::to_string(cluster.devices) +
        " devices of " + cluster.name + ", found one for " +
        std::to_string(devices) + ": name a larger cluster");
  const int64_t per_node =
      std::min<int64_t>(devices, cluster.devices_per_node());
  if (devices % per_node != 0)
    return InvalidArgumentError(
        "expected a plan for whole nodes of " + std::to_string(per_node) +
        " devices, found one for " + std::to_string(devices));
  std::string name;
  for (char c : artifact.substr(artifact.rfind('/') + 1))
    name += std::isalnum(static_cast<unsigned char>(c)) ? c : '-';
  std::string script =
      "#!/bin/bash\n#SBATCH --job-name=" + name +
      "\n#SBATCH --nodes=" + std::to_string(devices / per_node) +
      "\n#SBATCH --ntasks-per-node=" + std::to_string(per_node) + "\n";
  if (cluster.device.is_gpu)
    script += "#SBATCH --gpus-per-node=" + std::to_string(per_node) + "\n";
  if (!options.time.empty()) script += "#SBATCH --time=" + options.time + "\n";
  if (!options.account.empty())
    script += "#SBATCH --account=" + options.account + "\n";
  script +=
      "#SBATCH --exclusive\n"
      "# " +
      cluster.name + ", " + plan::ToString(plan.mesh) +
      ": a task for each device, node by node, so that the last axis of the\n"
      "# mesh stays within a node.\n"
      "set -e\n"
      "srun --ntasks=" +
      std::to_string(devices) + " --distribution=block partita-run train '";
  for (char c : artifact)
    script += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return script + "' \"$@\"\n";
}

}  // namespace partita::planner
