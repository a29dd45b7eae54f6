// Checks that a cluster can run a division of a model.
#ifndef PARTITA_COMPILER_PLANNER_TRANSFORMER_CHECK_RUNS_H_
#define PARTITA_COMPILER_PLANNER_TRANSFORMER_CHECK_RUNS_H_

#include "absl/status/status.h"
#include "compiler/planner/cluster/cluster.h"
#include "compiler/planner/transformer/architecture.h"

namespace partita::planner {

// Refuses incompatible sizes (CheckDivision), more devices than the cluster
// has, offloading without a host, and a precision that the devices do not
// support.
absl::Status CheckRuns(const Architecture& architecture,
                       const Division& division, const Cluster& cluster);

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_TRANSFORMER_CHECK_RUNS_H_
