// With b = B / m: E|g_b|^2 = |G|^2 + tr / b and E|g_B|^2 = |G|^2 + tr / B, two
// equations for |G|^2 and tr.
#include "compiler/autodiff/noise_scale.h"

#include "compiler/autodiff/training_signature.h"
#include "dialects/nn/dialect.h"

namespace partita::autodiff {

mlir::Value squareOf(nn::MathBuilder& math, mlir::Value gradient) {
  mlir::Value wide = math.widen(gradient);
  mlir::Value sum = math.multiply(wide, wide);
  llvm::SmallVector<int64_t> dims;
  for (int64_t i = 0; i < nn::MathBuilder::typeOf(sum).getRank(); ++i)
    dims.push_back(i);
  if (!dims.empty()) sum = math.reduce(nn::ReduceKind::sum, sum, dims);
  return math.asFloat(sum,
                      mlir::Float32Type::get(gradient.getType().getContext()));
}

void addNoiseResults(mlir::func::FuncOp main, mlir::Value small,
                     mlir::Value big, int64_t microbatches) {
  mlir::OpBuilder builder(main.front().getTerminator());
  nn::MathBuilder math(builder, main.getLoc());
  const auto type = nn::MathBuilder::typeOf(big);
  const auto times = [&](mlir::Value value, double factor) {
    return math.multiply(value, math.constant(type, factor));
  };
  const auto m = static_cast<double>(microbatches);
  mlir::Value noise =
      math.subtract(times(small, m / (m - 1)), times(big, 1 / (m - 1)));
  mlir::Value signal = times(math.subtract(big, small), m / (m - 1));
  nn::Signature signature(main);
  addResult(signature, noise, nn::kNameAttr, kNoiseResult,
            firstUpdate(signature));
  addResult(signature, signal, nn::kNameAttr, kSignalResult,
            firstUpdate(signature));
}

}  // namespace partita::autodiff
