// For tests: meshes and shardings from text, collectives as text.
#ifndef PARTITA_COMPILER_CORE_TEST_SHARDINGS_H_
#define PARTITA_COMPILER_CORE_TEST_SHARDINGS_H_

#include <sstream>
#include <string>
#include <vector>

#include "compiler/core/mesh.h"
#include "compiler/core/reshard.h"
#include "compiler/core/sharding.h"

namespace partita::core {

// Parses "x=2 y=8".
inline Mesh MeshOf(const std::string& text) {
  Mesh mesh;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) {
    const size_t equal = word.find('=');
    mesh.axes.push_back(
        {word.substr(0, equal), std::stoll(word.substr(equal + 1))});
  }
  return mesh;
}

// Parses "x" or "y:(1)4".
inline AxisRef RefOf(const Mesh& mesh, const std::string& text) {
  const size_t colon = text.find(':');
  const int axis = mesh.Find(text.substr(0, colon));
  if (colon == std::string::npos) return WholeAxis(mesh, axis);
  const size_t close = text.find(')');
  return {axis, std::stoll(text.substr(colon + 2, close - colon - 2)),
          std::stoll(text.substr(close + 1))};
}

// Parses one word per dimension: "-" is whole, "x,y:(1)4|28" is divided; "+x"
// is unreduced.
inline Sharding ShardingOf(const Mesh& mesh, const std::string& text) {
  Sharding sharding;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) {
    std::vector<AxisRef> axes;
    DimSharding dim;
    dim.open = false;
    if (const size_t bar = word.find('|'); bar != std::string::npos) {
      dim.block = std::stoll(word.substr(bar + 1));
      word.resize(bar);
    }
    std::istringstream list(word[0] == '+' ? word.substr(1) : word);
    if (word != "-")
      for (std::string axis; std::getline(list, axis, ',');)
        axes.push_back(RefOf(mesh, axis));
    if (word[0] == '+') {
      sharding.unreduced = axes;
    } else {
      dim.axes = axes;
      sharding.dims.push_back(dim);
    }
  }
  return sharding;
}

inline std::string Text(const Mesh& mesh, const Collective& step) {
  std::string text =
      std::string(NameOf(step.kind)) + " {" + ToString(mesh, step.axes) + "}";
  if (step.dim >= 0) text += " dim " + std::to_string(step.dim);
  if (step.other_dim >= 0) text += " from " + std::to_string(step.other_dim);
  return text + " -> " + ToString(mesh, step.result);
}

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_TEST_SHARDINGS_H_
