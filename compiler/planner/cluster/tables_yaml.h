// Measured tables in a cluster.yaml.
#ifndef PARTITA_COMPILER_PLANNER_CLUSTER_TABLES_YAML_H_
#define PARTITA_COMPILER_PLANNER_CLUSTER_TABLES_YAML_H_

#include <string>

#include "absl/status/status.h"
#include "compiler/plan/yaml.h"
#include "compiler/planner/cluster/measured.h"

namespace partita::planner {

// Reads the list under `tables`. Errors name `origin`, line and column.
absl::Status ReadTables(const plan::Node& node, const std::string& origin,
                        RateTables& tables);
// Writes the field `tables` so that ReadTables reads it back as the same. Empty
// if there are no tables.
std::string WriteTables(const RateTables& tables);

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_CLUSTER_TABLES_YAML_H_
