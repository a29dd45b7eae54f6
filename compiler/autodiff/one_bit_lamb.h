// 1-bit LAMB (Li, Awan, Tang, Rajbhandari and He, 2021).
//
// The warm-up is LAMB, X = X - rate r U with r = |X| / |U|, and keeps of each
// parameter c = 0.9 c + 0.1 r, from 0. After T steps of it only the momentum M
// is exchanged, in one bit, and the second moment V stays as it is; what the
// gradient was follows from M, and a fresh W goes on from V:
//   G = (M - beta1 M') / (1 - beta1), where M' is the momentum before
//   W = beta2 W + (1 - beta2) G^2
//   f = max of (sqrt(V) + epsilon) / (sqrt(W) + epsilon), both corrected,
//       within a tenth of the f before, from 1, and in [0.5, 4]
//   U = M / (sqrt(V) + epsilon), corrected, + weight decay X
//   X = X - rate f c / (1 - 0.9^T) U
// As in 1-bit Adam an element whose V is 0 has no M in U, and no part in f.
#ifndef PARTITA_COMPILER_AUTODIFF_ONE_BIT_LAMB_H_
#define PARTITA_COMPILER_AUTODIFF_ONE_BIT_LAMB_H_

#include "compiler/autodiff/optimizer.h"

namespace partita::autodiff {

inline constexpr double kRatioBeta = 0.9;

// The second phase. States are M', V, W, c and f; a f of 0 is that of the first
// step, to which W has not begun. Returns X, W and f.
llvm::SmallVector<mlir::Value> buildOneBitLamb(
    nn::MathBuilder& math, const Optimizer& optimizer, mlir::Value parameter,
    mlir::Value momentum, llvm::ArrayRef<mlir::Value> states,
    const StepScalars& scalars);

}  // namespace partita::autodiff

#endif  // PARTITA_COMPILER_AUTODIFF_ONE_BIT_LAMB_H_
