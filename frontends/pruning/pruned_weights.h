// Finds the weights that can be pruned. Only products and convolutions may read
// such a weight.
#ifndef PARTITA_FRONTENDS_PRUNING_PRUNED_WEIGHTS_H_
#define PARTITA_FRONTENDS_PRUNING_PRUNED_WEIGHTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::pruning {

struct PrunedWeight {
  unsigned argument = 0;  // of @main
  std::string name;
  std::vector<int64_t> shape;
  // The dimensions that all products sum over, in order.
  std::vector<int64_t> summed;
};

// All parameters of floats with two and more dimensions, whose readers sum over
// the same dimensions. Functions that @main calls are followed. `others`
// receives the names of parameters with two and more dimensions that something
// else reads, such as embeddings.
std::vector<PrunedWeight> findWeights(mlir::func::FuncOp main,
                                      std::vector<std::string>& others);

// A dimension of an argument of @main.
struct Place {
  unsigned argument = 0;
  int64_t dim = 0;
};

// The dimensions that have to be reordered with the summed dimension of
// `weight`, so that the model computes the same: rows of the weights and biases
// that make the product's other operand. Empty if the model does not allow it:
// the operand comes from more than elementwise operations on products and
// biases, or something else reads it too.
std::vector<Place> reorderedWith(mlir::func::FuncOp main,
                                 const PrunedWeight& weight);

}  // namespace partita::pruning

#endif  // PARTITA_FRONTENDS_PRUNING_PRUNED_WEIGHTS_H_
