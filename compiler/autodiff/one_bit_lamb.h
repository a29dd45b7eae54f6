// 1-bit LAMB (Li, Awan, Tang, Rajbhandari and He, 2021).
//
// The warm-up is LAMB, X = X - rate r U with r = |X| / |U|. It keeps c = 0.9 c
// + 0.1 r per parameter, initially 0. After T warm-up steps only the momentum M
// is exchanged, with one bit per element, and the second moment V is frozen.
// The gradient is recovered from M, and a fresh second moment W continues from
// V:
//   G = (M - beta1 M') / (1 - beta1), where M' is the previous momentum
//   W = beta2 W + (1 - beta2) G^2
//   f = max of (sqrt(V) + epsilon) / (sqrt(W) + epsilon), both corrected,
//       within a tenth of the previous f (initially 1), and in [0.5, 4]
//   U = M / (sqrt(V) + epsilon), corrected, + weight decay X
//   X = X - rate f c / (1 - 0.9^T) U
// As in 1-bit Adam, an element whose V is 0 contributes no M to U, and nothing
// to f.
#ifndef PARTITA_COMPILER_AUTODIFF_ONE_BIT_LAMB_H_
#define PARTITA_COMPILER_AUTODIFF_ONE_BIT_LAMB_H_

#include "compiler/autodiff/optimizer.h"

namespace partita::autodiff {

inline constexpr double kRatioBeta = 0.9;

// Builds an update of the second phase. States are M', V, W, c and f; f is 0 in
// the first step, when W has no value yet. Returns X, W and f.
llvm::SmallVector<mlir::Value> buildOneBitLamb(
    nn::MathBuilder& math, const Optimizer& optimizer, mlir::Value parameter,
    mlir::Value momentum, llvm::ArrayRef<mlir::Value> states,
    const StepScalars& scalars);

}  // namespace partita::autodiff

#endif  // PARTITA_COMPILER_AUTODIFF_ONE_BIT_LAMB_H_
