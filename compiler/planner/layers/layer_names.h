// Layers by the dotted names of what is in them.
#ifndef PARTITA_COMPILER_PLANNER_LAYERS_LAYER_NAMES_H_
#define PARTITA_COMPILER_PLANNER_LAYERS_LAYER_NAMES_H_

#include <map>
#include <set>
#include <string>
#include <vector>

namespace partita::planner {

// A tree of modules. A list is a module whose parts are numbered and have parts
// themselves; a layer is the largest module that neither is one nor holds one:
// "stages.0.blocks.1", "stem".
class LayerNames {
 public:
  // All modules, before the first question.
  void Add(const std::string& module);

  // The layer that a module is in; empty where it holds several.
  std::string LayerOf(const std::string& module) const;

 private:
  struct Node {
    std::map<std::string, Node> parts;
    bool IsList() const;
    bool HoldsList() const;  // or is one
  };
  Node root_;
};

// The fewest patterns of a plan's scope that hold these layers and no other one
// of `all`: "stages.{0,1}.*" of all blocks of two stages.
std::vector<std::string> PatternsOf(const std::set<std::string>& layers,
                                    const std::set<std::string>& all);

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_LAYERS_LAYER_NAMES_H_
