// Additions that a library can perform as the last step of a matrix product or
// a convolution: a bias, then a residual.
#ifndef PARTITA_DIALECTS_NN_PRODUCT_EPILOGUE_H_
#define PARTITA_DIALECTS_NN_PRODUCT_EPILOGUE_H_

#include "mlir/IR/Operation.h"
#include "mlir/IR/Value.h"

namespace partita::nn {

// result = product + bias + residual. Both addends have the product's element
// type, and at least one of them is set. 16-bit addends are widened, added in
// f32 and rounded to the product's type by `last`.
struct ProductEpilogue {
  mlir::Operation* last = nullptr;  // its result replaces the product's
  mlir::Value bias;      // one value per channel of the result; null: none
  mlir::Value residual;  // of the result's type; null: none

  explicit operator bool() const { return last != nullptr; }
};

// The longest epilogue of an nn.dot_general or an nn.conv. Nothing else reads
// the product or a value between it and `last`. Without `residuals`, finds
// biases only. The epilogue begins at `scaled`, if it is not null: the product
// times one number per channel.
ProductEpilogue epilogueOf(mlir::Operation* product, bool residuals,
                           mlir::Value scaled = nullptr);

// The tensor with one element per channel of the product's result that `value`
// repeats along all other dimensions, or null.
mlir::Value channelVector(mlir::Operation* product, mlir::Value value);

}  // namespace partita::nn

#endif  // PARTITA_DIALECTS_NN_PRODUCT_EPILOGUE_H_
