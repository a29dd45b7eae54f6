// A division as the plan file that says it, and as the job that runs it.
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
  // What layers are called before their number: "transformer.h." of
  // "transformer.h.11"; "*." where nobody knows, which any such name matches.
  std::string layer = "*.";
  // Whether the model's tokens have a sequence to divide (L).
  bool sequence = true;
};

// Axes are pipe, data, context and tensor, of those that divide anything; the
// first is the slowest. Fails for what no plan can say: fp8.
absl::StatusOr<plan::Plan> PlanOf(const Architecture& architecture,
                                  const Division& division,
                                  const PlanNames& names);

// Of layers that are divided each in its own way: the batch over `data`, and
// what each layer's mapping names over `tensor`, in entries scoped to its
// layers.
absl::StatusOr<plan::Plan> PlanOfLayers(const StepGraph& step,
                                        const LayerTable& table,
                                        const LayerDivision& division,
                                        core::Precision precision);

// What many clusters want to know of a job; empty: not said.
struct SlurmOptions {
  std::string time, account;
};

// Refuses options that a line of a script cannot have.
absl::Status CheckSlurm(const SlurmOptions& options);

// The submission script for Slurm: a task for each device of the plan, whole
// nodes of the cluster. `artifact` is the program's file. Refuses a plan of
// more devices than the cluster has, and what CheckSlurm refuses.
absl::StatusOr<std::string> SlurmScript(const plan::Plan& plan,
                                        const Cluster& cluster,
                                        const std::string& artifact,
                                        const SlurmOptions& options = {});

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_SEARCH_WRITE_PLAN_H_
