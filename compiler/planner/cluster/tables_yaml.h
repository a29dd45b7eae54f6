// What was measured, as a cluster.yaml has it.
#ifndef PARTITA_COMPILER_PLANNER_CLUSTER_TABLES_YAML_H_
#define PARTITA_COMPILER_PLANNER_CLUSTER_TABLES_YAML_H_

#include <string>

#include "absl/status/status.h"
#include "compiler/plan/yaml.h"
#include "compiler/planner/cluster/measured.h"

namespace partita::planner {

// Reads the list under `tables`; `origin` is the file's name, for errors, which
// say line and column.
absl::Status ReadTables(const plan::Node& node, const std::string& origin,
                        RateTables& tables);
// What it reads back as the same, the field's name included; empty without
// tables.
std::string WriteTables(const RateTables& tables);

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_CLUSTER_TABLES_YAML_H_
