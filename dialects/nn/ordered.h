// Grouped products of rows in order of their matrices, which only kernels for
// GPUs have. They are apart from the dialect because few files need them.
#ifndef PARTITA_DIALECTS_NN_ORDERED_H_
#define PARTITA_DIALECTS_NN_ORDERED_H_

#include "dialects/nn/dialect.h"

#define GET_OP_CLASSES
#include "dialects/nn/ordered.h.inc"

namespace partita::nn {

// Adds these operations to the dialect when it is loaded.
void registerOrderedOperations(mlir::DialectRegistry& registry);

// Numbers in the result of nn.order_rows.
inline int64_t sizeOfRowOrder(int64_t matrices, int64_t rows) {
  return matrices + 2 + rows;
}

}  // namespace partita::nn

#endif  // PARTITA_DIALECTS_NN_ORDERED_H_
