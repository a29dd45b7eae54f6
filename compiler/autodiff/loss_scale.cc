#include "compiler/autodiff/loss_scale.h"

namespace partita::autodiff {

using mlir::Value;
using mlir::func::FuncOp;

std::optional<LossScale> LossScale::find(FuncOp main) {
  LossScale found;
  for (unsigned i = 0; i < main.getNumResults(); ++i) {
    auto name = main.getResultAttrOfType<mlir::StringAttr>(i, nn::kNameAttr);
    if (name && name.getValue() == kLossScaleResult)
      found.scale = main.front().getTerminator()->getOperand(i);
  }
  for (unsigned i = 0; i < main.getNumArguments(); ++i) {
    auto name = main.getArgAttrOfType<mlir::StringAttr>(i, nn::kNameAttr);
    if (!name) continue;
    if (name.getValue() == kGoodStepsState)
      found.good_steps = main.getArgument(i);
    if (name.getValue() == kSkippedState) found.skipped = main.getArgument(i);
  }
  if (!found.scale || !found.good_steps || !found.skipped) return std::nullopt;
  return found;
}

std::vector<std::pair<std::string, Value>> LossScale::next(
    nn::MathBuilder& math, Value finite, int64_t growth_interval) const {
  using mlir::arith::CmpFPredicate;
  const auto real = nn::MathBuilder::typeOf(scale),
             count = nn::MathBuilder::typeOf(good_steps);
  const auto bounded = [&](double factor, CmpFPredicate beyond, double bound) {
    Value moved = math.multiply(scale, factor),
          end = math.constant(real, bound);
    return math.select(math.compare(beyond, moved, end), end, moved);
  };
  Value zero = math.constantInt(count, 0);
  Value good = math.addInt(good_steps, 1);
  Value grows = math.compare(mlir::arith::CmpIPredicate::sge, good,
                             math.constantInt(count, growth_interval));
  Value next_scale = math.select(
      finite,
      math.select(grows, bounded(2, CmpFPredicate::OGT, kLargestLossScale),
                  scale),
      bounded(0.5, CmpFPredicate::OLT, kSmallestLossScale));
  Value next_good = math.select(finite, math.select(grows, zero, good), zero);
  Value next_skipped = math.select(finite, skipped, math.addInt(skipped, 1));
  return {{kLossScaleState, next_scale},
          {kGoodStepsState, next_good},
          {kSkippedState, next_skipped}};
}

}  // namespace partita::autodiff
