// The update formulas of optimizers, per parameter.
//
// Sources: SGD with momentum, also Nesterov's, as in PyTorch; Adam (Kingma and
// Ba, 2015); AdamW (Loshchilov and Hutter, 2019); LAMB (You et al., 2020);
// Adafactor: adafactor.h; 1-bit Adam after its warm-up (Tang et al., 2021);
// 1-bit LAMB (Li et al., 2021): one_bit_lamb.h; 0/1 Adam (Lu et al., 2022):
// zero_one_adam.h.
#ifndef PARTITA_COMPILER_AUTODIFF_OPTIMIZER_H_
#define PARTITA_COMPILER_AUTODIFF_OPTIMIZER_H_

#include <string>

#include "compiler/autodiff/adafactor.h"
#include "dialects/nn/math_builder.h"

namespace partita::autodiff {

enum class OptimizerKind {
  kSgd,
  kAdam,
  kAdamW,
  kLamb,
  kAdafactor,
  kOneBitAdam,        // AdamW with a frozen second moment
  kOneBitLambWarmup,  // LAMB that averages its ratios
  kOneBitLamb,
  // Steps of 0/1 Adam: zero_one_adam.h.
  kZeroOneVariance,
  kZeroOneExchange,
  kZeroOneLocal
};

// True if the optimizer takes the new momentum instead of the gradient.
inline bool exchangesMomenta(OptimizerKind kind) {
  return kind == OptimizerKind::kOneBitAdam ||
         kind == OptimizerKind::kOneBitLamb;
}

// True if devices compute gradients with parameters of their own.
inline bool movesLocally(OptimizerKind kind) {
  return kind == OptimizerKind::kZeroOneExchange ||
         kind == OptimizerKind::kZeroOneLocal;
}
inline bool isZeroOne(OptimizerKind kind) {
  return kind == OptimizerKind::kZeroOneVariance || movesLocally(kind);
}

// A state of the optimizer, per parameter.
struct State {
  std::string name;
  // Empty: the state has the parameter's shape. Else it has Factored's shape
  // without these dimensions, which are dimension `model_without` of the model.
  llvm::SmallVector<int64_t> without;
  int64_t model_without = -1;
  bool is_frozen = false;  // read, but not updated
  bool is_scalar = false;
};

struct Optimizer {
  OptimizerKind kind = OptimizerKind::kAdamW;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double momentum = 0;      // SGD only
  bool nesterov = false;    // SGD with momentum only
  double weight_decay = 0;  // into the gradient for SGD and Adam, decoupled for
                            // AdamW and Adafactor, into the direction for LAMB
  double rate_scale = 1;    // factor of the learning rate
  bool keeps_zeros = false;  // zeros of the parameter stay zero
  int64_t warmup = 0;        // 1-bit optimizers: number of warm-up steps

  // Returns the states of a parameter. Only Adafactor uses `factored`.
  llvm::SmallVector<State> states(const Factored& factored) const;
};

// Scalars of a step, tensor<f32>: the learning rate, and the bias corrections
// of Adam's moments. Null if not needed.
struct StepScalars {
  mlir::Value learning_rate;
  mlir::Value first_correction;   // 1 / (1 - beta1^step)
  mlir::Value second_correction;  // 1 / sqrt(1 - beta2^step)
  mlir::Value decay;              // Adafactor's second moment
  mlir::Value fresh_correction;   // 1-bit LAMB's fresh second moment
};
inline constexpr mlir::Value StepScalars::* kStepScalars[] = {
    &StepScalars::learning_rate, &StepScalars::first_correction,
    &StepScalars::second_correction, &StepScalars::decay,
    &StepScalars::fresh_correction};

// Builds the corrections of step `step` (a scalar i64, 1 for the first step).
// `squares`: the number of updates of the second moment; null: `step`.
void buildCorrections(nn::MathBuilder& math, mlir::OpBuilder& builder,
                      const Optimizer& optimizer, mlir::Value step,
                      mlir::Value squares, StepScalars& scalars);

// Builds beta1 * momentum + (1 - beta1) * gradient.
mlir::Value buildMomentum(nn::MathBuilder& math, const Optimizer& optimizer,
                          mlir::Value momentum, mlir::Value gradient);

// Builds the new parameter, then the new values of states that are not frozen,
// in the order of Optimizer::states. Not for kinds that movesLocally.
// `gradient` has the parameter's type. If exchangesMomenta, it is the new
// momentum, which is then not among the new states.
llvm::SmallVector<mlir::Value> buildUpdate(
    nn::MathBuilder& math, const Optimizer& optimizer, const Factored& factored,
    mlir::Value parameter, mlir::Value gradient,
    llvm::ArrayRef<mlir::Value> states, const StepScalars& scalars);

}  // namespace partita::autodiff

#endif  // PARTITA_COMPILER_AUTODIFF_OPTIMIZER_H_
