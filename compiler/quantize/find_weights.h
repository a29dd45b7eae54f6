// Finds the weights of matrix products and the tables of embeddings: parameters
// of @main, also where layer functions read them.
#ifndef PARTITA_COMPILER_QUANTIZE_FIND_WEIGHTS_H_
#define PARTITA_COMPILER_QUANTIZE_FIND_WEIGHTS_H_

#include <string>
#include <vector>

#include "llvm/ADT/SmallVector.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::quantize {

// An argument of @main with data of f32 and at least two dimensions.
struct Weight {
  unsigned argument = 0;
  std::string name;
  // Dimensions that no product sums over, increasing: the output channels. The
  // rows of a table.
  llvm::SmallVector<int64_t> channels;
  bool is_multiplied = false;  // by a product
  bool is_table = false;       // rows of it are looked up
  // The reason why it cannot be quantized; empty if it can.
  std::string obstacle;
};

std::vector<Weight> findWeights(mlir::func::FuncOp main);

}  // namespace partita::quantize

#endif  // PARTITA_COMPILER_QUANTIZE_FIND_WEIGHTS_H_
