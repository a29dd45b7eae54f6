// YAML as a plain tree with places. The only part of Partita that sees yaml-cpp
// and its exceptions.
#ifndef PARTITA_COMPILER_PLAN_YAML_H_
#define PARTITA_COMPILER_PLAN_YAML_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/plan/plan.h"

namespace partita::plan {

struct Node {
  enum class Kind { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  std::string scalar;
  // Of a map: key, value, key, value ...
  std::vector<Node> children;
  Location where;
};

// Reads one document. Refuses several, aliases, and what is nested more than 32
// deep or has more than 100,000 nodes.
absl::StatusOr<Node> ParseYaml(const std::string& text,
                               const std::string& origin);

// "nothing", "'text'", "a list", "a map".
std::string Describe(const Node& node);

}  // namespace partita::plan

#endif  // PARTITA_COMPILER_PLAN_YAML_H_
