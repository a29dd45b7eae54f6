// Finds the names of dimensions from the structure of a model.
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
  // A segment such as the size of a head or a window has the empty name: it is
  // recognised and never divided.
  std::map<int, std::string> of_segment;
  // Consecutive segments that an operation reads as one dimension.
  std::map<std::vector<int>, std::string> roles;
  // Classes for which the structure suggests a second name. The first is used.
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
  // Names a class unless it already has a name.
  void set(int segment, const std::string& name);
};

// Adds all names found to `names`, which may already hold a user's names:
// - B, L: first and second dimension of inputs and of attention;
// - N: heads of attention, including key-value heads;
// - H, W: spatial dimensions of convolutions and dimensions linked to them;
// - V: rows of embeddings of input tokens, the last dimension of results that
//   are products, and of values that labels pick one of;
// - X: experts of nn.experts, batch dimension of products with parameters;
// - E: widths of embeddings, residual sums and normalised values, and channels
//   of images;
// - M: hidden width of nn.experts, the dimension between a product from E and a
//   product to E.
void findNames(mlir::ModuleOp module, const DimClasses& classes, Names& names);

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_FIND_NAMES_H_
