// Finds layers from the dotted names of their modules.
#ifndef PARTITA_COMPILER_PLANNER_LAYERS_LAYER_NAMES_H_
#define PARTITA_COMPILER_PLANNER_LAYERS_LAYER_NAMES_H_

#include <map>
#include <set>
#include <string>
#include <vector>

namespace partita::planner {

// A tree of modules. A list is a module with numbered parts that have parts
// themselves. A layer is a largest module that neither is nor contains a list:
// "stages.0.blocks.1", "stem".
class LayerNames {
 public:
  // Adds a module. Add all modules before the first LayerOf.
  void Add(const std::string& module);

  // The layer that contains the module. Empty if the module contains several.
  std::string LayerOf(const std::string& module) const;

 private:
  struct Node {
    std::map<std::string, Node> parts;
    bool IsList() const;
    bool HoldsList() const;  // or is one
  };
  Node root_;
};

// The fewest scope patterns that match these layers and no other of `all`:
// "stages.{0,1}.*" for all blocks of two stages.
std::vector<std::string> PatternsOf(const std::set<std::string>& layers,
                                    const std::set<std::string>& all);

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_LAYERS_LAYER_NAMES_H_
