// What dimensions mean, found from the structure of a model.
#ifndef PARTITA_COMPILER_SHARDING_FIND_NAMES_H_
#define PARTITA_COMPILER_SHARDING_FIND_NAMES_H_

#include <map>
#include <string>
#include <vector>

#include "compiler/sharding/dim_classes.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::sharding {

// Names of classes of segments.
struct Names {
  // The size of heads, windows and the like has the empty name: it is known,
  // and never divided.
  std::map<int, std::string> of_segment;
  // Several segments, one after the other, that something reads as a whole.
  std::map<std::vector<int>, std::string> roles;
  // Classes that the structure gives a second name: the first holds.
  struct Ambiguity {
    int segment;
    std::string name, other;
  };
  std::vector<Ambiguity> ambiguities;

  bool isNamed(int segment) const { return of_segment.count(segment) > 0; }
  std::string of(int segment) const {
    auto found = of_segment.find(segment);
    return found == of_segment.end() ? "" : found->second;
  }
  // Gives a class a name, if it has none.
  void set(int segment, const std::string& name);
};

// Adds to `names`, which may hold a user's, everything that is found:
// - B, L: the first and second dimension of inputs; of attention;
// - N: heads of attention, of keys and values too;
// - H, W: the spatial dimensions of convolutions and what they lead to;
// - V: rows of embeddings of input tokens, and the last dimension of results
//   that are products;
// - X: the batch dimension of products with parameters;
// - E: widths of embeddings, of residual sums, of what is normalised, and
//   channels of images;
// - M: what is between a product from and a product to E.
void findNames(mlir::ModuleOp module, const DimClasses& classes, Names& names);

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_FIND_NAMES_H_
