// Measures the noise of gradients (McCandlish et al., "An Empirical Model of
// Large-Batch Training", 2018, appendix A.1).
#ifndef PARTITA_COMPILER_AUTODIFF_NOISE_SCALE_H_
#define PARTITA_COMPILER_AUTODIFF_NOISE_SCALE_H_

#include <cstdint>

#include "dialects/nn/math_builder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::autodiff {

// Scalars f32 of @main, unbiased estimates from one step of B examples in m
// microbatches: the trace of the covariance of an example's gradient, divided
// by B; and the squared norm of the true gradient. The noise scale is B times
// the ratio of their averages over steps. The runtime knows these names
// (runtime/train/noise_scale.h).
inline constexpr char kNoiseResult[] = "gradient_noise";
inline constexpr char kSignalResult[] = "gradient_signal";

// The sum of squares of a gradient, f32.
mlir::Value squareOf(nn::MathBuilder& math, mlir::Value gradient);

// Adds both results before the first update. `small` is the sum of squareOf all
// microbatches' summands of the gradient, `big` is squareOf their sum. With
// summands g_k, a microbatch's own gradient is m g_k if all microbatches count
// as many targets.
void addNoiseResults(mlir::func::FuncOp main, mlir::Value small,
                     mlir::Value big, int64_t microbatches);

}  // namespace partita::autodiff

#endif  // PARTITA_COMPILER_AUTODIFF_NOISE_SCALE_H_
