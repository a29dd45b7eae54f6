// Convolutions of integers of 8 bits that libraries compute.
#ifndef PARTITA_COMPILER_KERNELS_BYTE_CONVOLUTIONS_H_
#define PARTITA_COMPILER_KERNELS_BYTE_CONVOLUTIONS_H_

#include <optional>

#include "dialects/exec/dialect.h"
#include "dialects/nn/dialect.h"

namespace partita::kernels {

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

// Matches a convolution of f32 whose operands are widened integers.
std::optional<ByteConvolution> matchByteConvolution(nn::ConvOp conv);

// Builds the call, without bias, in front of the scaling or of `conv`. It
// results in f32.
exec::ConvOp buildByteConvolution(nn::ConvOp conv,
                                  const ByteConvolution& found);

// The only element of a tensor that repeats it, as a tensor with one element:
// what a broadcast repeats, or a new constant. Null if there is none.
mlir::Value onlyElement(mlir::OpBuilder& builder, mlir::Value value);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_BYTE_CONVOLUTIONS_H_
