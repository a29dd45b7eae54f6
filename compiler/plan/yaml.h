// YAML as a plain tree with positions. Only this file's code uses yaml-cpp and
// its exceptions.
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
  // For a map: key, value, key, value, ...
  std::vector<Node> children;
  Location where;
};

// Reads one document. Refuses a second document, aliases, nesting deeper than
// 32, and more than 100,000 nodes.
absl::StatusOr<Node> ParseYaml(const std::string& text,
                               const std::string& origin);

// "nothing", "'text'", "a list", "a map".
std::string Describe(const Node& node);

}  // namespace partita::plan

#endif  // PARTITA_COMPILER_PLAN_YAML_H_
