// Builds convolutions of integers of 8 bits that libraries compute.
#ifndef PARTITA_COMPILER_KERNELS_BYTE_CONVOLUTIONS_H_
#define PARTITA_COMPILER_KERNELS_BYTE_CONVOLUTIONS_H_

#include "dialects/exec/dialect.h"
#include "dialects/nn/byte_convolution.h"
#include "dialects/nn/dialect.h"

namespace partita::kernels {

// Builds the call, without bias, in front of the scaling or of `conv`. It
// results in f32.
exec::ConvOp buildByteConvolution(nn::ConvOp conv,
                                  const nn::ByteConvolution& found);

// The only element of a tensor that repeats it, as a tensor with one element:
// what a broadcast repeats, or a new constant. Null if there is none.
mlir::Value onlyElement(mlir::OpBuilder& builder, mlir::Value value);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_BYTE_CONVOLUTIONS_H_
