// Writes a division as a plan, and as a job script that runs it.
#ifndef PARTITA_COMPILER_PLANNER_SEARCH_WRITE_PLAN_H_
#define PARTITA_COMPILER_PLANNER_SEARCH_WRITE_PLAN_H_

#include <string>

#include "absl/status/statusor.h"
#include "compiler/core/precision.h"
#include "compiler/plan/plan.h"
#include "compiler/planner/cluster/cluster.h"
#include "compiler/planner/layers/layers.h"
#include "compiler/planner/layers/step_graph.h"
#include "compiler/planner/transformer/architecture.h"

namespace partita::planner {

struct PlanNames {
  // Prefix of layer names before the number: "transformer.h." for
  // "transformer.h.11". "*.", which matches any prefix, if it is unknown.
  std::string layer = "*.";
  // True if the model's tokens form a sequence (L).
  bool sequence = true;
};

// A division's choices as a plan names them.
plan::RecomputePolicy PolicyOf(Recomputation recompute);
plan::ScheduleKind KindOf(PipelineSchedule schedule);  // without vpp

// How experts over the axes of the batch get their rows in plans of the
// planner: by what moves fewer bytes, and at most twice the even share on each
// device. A step with more rows stops with an error that names the layer.
// Memory for the worst case, all rows of the group, would be as many times
// larger as there are devices in the group.
plan::Experts BoundedRows();

// The plan of a division. Its axes are pipe, data, expert, context and tensor,
// slowest first. Axes of size 1 are left out. Experts over all of dp need no
// axis of their own. Fails for experts that are not divided over whole axes.
absl::StatusOr<plan::Plan> PlanOf(const Architecture& architecture,
                                  const Division& division,
                                  const PlanNames& names);

// The plan of layers that are divided each in its own way. The batch is divided
// over `data`. The names of each layer's mapping are divided over `tensor`, in
// entries scoped to the layers.
absl::StatusOr<plan::Plan> PlanOfLayers(const StepGraph& step,
                                        const LayerTable& table,
                                        const LayerDivision& division,
                                        core::Precision precision);

// Job settings that many clusters require. Empty: not set.
struct SlurmOptions {
  std::string time, account;
};

// Refuses options that are invalid in a script line.
absl::Status CheckSlurm(const SlurmOptions& options);

// The submission script for Slurm, with one task per device of the plan on
// whole nodes of the cluster. `artifact` is the program's file. Refuses a plan
// with more devices than the cluster or without whole nodes, and options that
// CheckSlurm refuses.
absl::StatusOr<std::string> SlurmScript(const plan::Plan& plan,
                                        const Cluster& cluster,
                                        const std::string& artifact,
                                        const SlurmOptions& options = {});

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_SEARCH_WRITE_PLAN_H_
