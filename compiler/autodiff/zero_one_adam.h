// 0/1 Adam (Lu, Li, Zhang, De Sa and He, 2022).
//
// A step is one of three programs, which share parameters and states:
//   variance  G is the mean gradient, exchanged in full; AdamW with momentum M
//             and second moment V. Local steps have not begun.
//   exchange  G is the device's own gradient:
//               X = (1 - decay d) P - U / (sqrt(V) + epsilon)
//               M = beta1 M + (1 - beta1) G, where G is taken at X
//               U = U + rate M;  r = r + rate;  d = d + rate
//             then devices exchange U with one bit per element:
//               P = (1 - decay d) P - mean U / (sqrt(V) + epsilon)
//               M = mean U / r;  U = r = d = 0
//   local     the first half of exchange.
// P is the parameter after the last exchange, X the device's own. M and U
// differ between devices. In U and r, `rate` includes the correction of M; V is
// corrected by its number of updates. An element whose V is 0 does not move,
// since one bit cannot represent 0. Decay is applied to P, so that U holds
// nothing but momenta.
#ifndef PARTITA_COMPILER_AUTODIFF_ZERO_ONE_ADAM_H_
#define PARTITA_COMPILER_AUTODIFF_ZERO_ONE_ADAM_H_

#include "compiler/autodiff/device_marks.h"
#include "compiler/autodiff/optimizer.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::autodiff {

// States per parameter are exp_avg_sq (V), kLocalMomentum (M) and kLocalSum
// (U). States of the whole step: the number of updates of V (i64), d and r
// (f32).
inline constexpr char kVarianceSteps[] = "zero_one_adam/variance_steps";
inline constexpr char kRateSum[] = "zero_one_adam/rate_sum";
inline constexpr char kCorrectedRateSum[] = "zero_one_adam/corrected_rate_sum";

// Each function below makes a private function for one parameter, whose
// operands determine its argument types. P, M, U and V have the type in which
// the parameter is updated.

// (P, U, V, d, second correction) -> X in type `stored`.
mlir::func::FuncOp makeOwnParameter(mlir::ModuleOp module,
                                    const Optimizer& optimizer,
                                    llvm::ArrayRef<mlir::Value> operands,
                                    mlir::Type stored);

// (M, gradient, U, rate, P) -> M, U. P is read for pruned zeros only.
mlir::func::FuncOp makeLocalStep(mlir::ModuleOp module,
                                 const Optimizer& optimizer,
                                 llvm::ArrayRef<mlir::Value> operands);

// (P, mean U, V, d, r, second correction) -> (P in type `stored` if it differs,
// P, M, U).
mlir::func::FuncOp makeExchangeStep(mlir::ModuleOp module,
                                    const Optimizer& optimizer,
                                    llvm::ArrayRef<mlir::Value> operands,
                                    mlir::Type stored);

}  // namespace partita::autodiff

#endif  // PARTITA_COMPILER_AUTODIFF_ZERO_ONE_ADAM_H_
