// Dynamic loss scaling (Micikevicius et al., "Mixed Precision Training", 2018).
// Names shared by its two passes: --partita-scale-loss scales the loss, and
// --partita-append-optimizer divides gradients by the scale and chooses the
// next scale.
#ifndef PARTITA_COMPILER_AUTODIFF_LOSS_SCALE_H_
#define PARTITA_COMPILER_AUTODIFF_LOSS_SCALE_H_

#include <optional>
#include <string>
#include <vector>

#include "dialects/nn/math_builder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::autodiff {

// States: the scale of the next step (0: not chosen yet), the number of
// consecutive steps without overflow at this scale, and the total number of
// steps with overflow.
inline constexpr char kLossScaleState[] = "loss_scale/scale";
inline constexpr char kGoodStepsState[] = "loss_scale/good_steps";
inline constexpr char kSkippedState[] = "loss_scale/skipped";
// Results: the scale of this step, the loss times this scale, and the total
// number of skipped steps.
inline constexpr char kLossScaleResult[] = "loss_scale";
inline constexpr char kScaledLossResult[] = "scaled_loss";
inline constexpr char kSkippedResult[] = "skipped";

// Bounds of the scale. It is a power of two, so multiplying by it is exact.
inline constexpr double kSmallestLossScale = 1, kLargestLossScale = 16777216;

// Scalars of a step.
struct LossScale {
  mlir::Value scale;                // f32
  mlir::Value good_steps, skipped;  // i64, before this step

  // Returns nullopt if @main has no loss scale.
  static std::optional<LossScale> find(mlir::func::FuncOp main);

  // Returns the names and new values of the states. `finite` (i1) is true if no
  // gradient overflowed. `growth_interval` consecutive good steps double the
  // scale; an overflow halves it.
  std::vector<std::pair<std::string, mlir::Value>> next(
      nn::MathBuilder& math, mlir::Value finite, int64_t growth_interval) const;
};

}  // namespace partita::autodiff

#endif  // PARTITA_COMPILER_AUTODIFF_LOSS_SCALE_H_
