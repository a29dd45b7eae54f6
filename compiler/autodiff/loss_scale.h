// Dynamic loss scaling (Micikevicius et al., "Mixed Precision Training", 2018),
// what its two halves agree on: --partita-scale-loss, which scales what is
// differentiated, and --partita-append-optimizer, which scales gradients back
// and chooses the next scale.
#ifndef PARTITA_COMPILER_AUTODIFF_LOSS_SCALE_H_
#define PARTITA_COMPILER_AUTODIFF_LOSS_SCALE_H_

#include <optional>
#include <string>
#include <vector>

#include "dialects/nn/math_builder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::autodiff {

// States: the scale of the next step (0: none chosen yet), how many steps in a
// row did not overflow at it, and how many did overflow since the beginning.
inline constexpr char kLossScaleState[] = "loss_scale/scale";
inline constexpr char kGoodStepsState[] = "loss_scale/good_steps";
inline constexpr char kSkippedState[] = "loss_scale/skipped";
// Results: the scale of this step, the loss times it, and the steps skipped
// with this one.
inline constexpr char kLossScaleResult[] = "loss_scale";
inline constexpr char kScaledLossResult[] = "scaled_loss";
inline constexpr char kSkippedResult[] = "skipped";

// Scales are powers of two between these: a product with one is exact.
inline constexpr double kSmallestLossScale = 1, kLargestLossScale = 16777216;

// Scalars of a step.
struct LossScale {
  mlir::Value scale;                // f32
  mlir::Value good_steps, skipped;  // i64, before this step

  // None where @main has no loss scale.
  static std::optional<LossScale> find(mlir::func::FuncOp main);

  // What follows a step: the states' names and new values. `finite` (i1) says
  // that no gradient overflowed. `growth_interval` good steps in a row double
  // the scale, an overflow halves it.
  std::vector<std::pair<std::string, mlir::Value>> next(
      nn::MathBuilder& math, mlir::Value finite, int64_t growth_interval) const;
};

}  // namespace partita::autodiff

#endif  // PARTITA_COMPILER_AUTODIFF_LOSS_SCALE_H_
