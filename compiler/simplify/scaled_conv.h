// A convolution with a bias, and the same convolution times a factor per
// feature.
#ifndef PARTITA_COMPILER_SIMPLIFY_SCALED_CONV_H_
#define PARTITA_COMPILER_SIMPLIFY_SCALED_CONV_H_

#include <optional>

#include "dialects/nn/dialect.h"
#include "mlir/IR/Builders.h"

namespace partita::simplify {

// A convolution with a single use, and the bias added to it, if any.
struct ConvWithBias {
  nn::ConvOp conv;
  mlir::Value bias;  // a vector, or null

  // The dimension of the result that holds the features.
  int64_t feature();

  // Nothing if `value` is not such a convolution with at most one bias. Builds
  // the bias as a vector.
  static std::optional<ConvWithBias> match(mlir::OpBuilder& builder,
                                           mlir::Value value);
};

// Builds the vector that `value` repeats along all dimensions but `dim`. Null
// if it varies along another dimension.
mlir::Value vectorAlong(mlir::OpBuilder& builder, mlir::Value value,
                        int64_t dim);

// Builds the convolution with the weights of each output feature o multiplied
// by scale[o].
nn::ConvOp buildScaledConv(mlir::OpBuilder& builder, nn::ConvOp conv,
                           mlir::Value scale);

}  // namespace partita::simplify

#endif  // PARTITA_COMPILER_SIMPLIFY_SCALED_CONV_H_
