// Convolutions of f32 whose operands are integers of 8 bits that a model
// stores. Libraries for CPUs compute them with these integers.
#ifndef PARTITA_DIALECTS_NN_BYTE_CONVOLUTION_H_
#define PARTITA_DIALECTS_NN_BYTE_CONVOLUTION_H_

#include <optional>

#include "dialects/nn/dialect.h"
#include "mlir/IR/BuiltinAttributes.h"

namespace partita::nn {

// scale[o] * (convolution of input - zero and weight), with i8 for input and
// weight.
struct ByteConvolution {
  mlir::Value input, weight;
  mlir::SmallVector<int64_t> perm;  // of the input; empty: none
  bool input_unsigned = false;
  // A value whose only element is the zero point, or a splat; null: 0.
  mlir::Value zero;
  // One f32 per output channel, or a splat, and the multiplication by it;
  // null: absent.
  mlir::Value scale;
  mlir::Operation* scaling = nullptr;
};

// Matches a convolution of f32 whose operands are widened integers. Its weight
// is i8, without a zero point.
std::optional<ByteConvolution> matchByteConvolution(ConvOp conv);

// The constant that repeats one number, or null.
mlir::DenseElementsAttr splatOf(mlir::Value value);

}  // namespace partita::nn

#endif  // PARTITA_DIALECTS_NN_BYTE_CONVOLUTION_H_
