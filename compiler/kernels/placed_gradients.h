// Gradients of attention that are written where a product reads them.
#ifndef PARTITA_COMPILER_KERNELS_PLACED_GRADIENTS_H_
#define PARTITA_COMPILER_KERNELS_PLACED_GRADIENTS_H_

#include <cstdint>

#include "dialects/nn/dialect.h"
#include "llvm/ADT/SmallVector.h"

namespace partita::kernels {

// A gradient [batch, heads, rows, head size] as a part of another tensor.
struct PlacedGradient {
  mlir::Value gradient;  // a result of nn.attention_grad
  // The place of the first element and the strides of all dimensions, in
  // elements of the other tensor.
  int64_t begin = 0;
  llvm::SmallVector<int64_t> strides;
};

// The parts of `concat` if all of them are gradients of one nn.attention_grad,
// transposed and with heads joined, as in the gradient of a product for
// queries, keys and values together. Empty otherwise.
llvm::SmallVector<PlacedGradient> placedGradients(nn::ConcatOp concat);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_PLACED_GRADIENTS_H_
