// The arithmetic of optimizers, one parameter at a time.
//
// Sources: SGD with momentum, also Nesterov's, as in PyTorch; Adam (Kingma and
// Ba, 2015); AdamW (Loshchilov and Hutter, 2019); LAMB (You et al., 2020);
// Adafactor: adafactor.h; 1-bit Adam after its warm-up (Tang et al., 2021);
// 1-bit LAMB (Li et al., 2021): one_bit_lamb.h.
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
  kOneBitAdam,        // AdamW whose second moment stays as it is
  kOneBitLambWarmup,  // LAMB that keeps its ratios' averages
  kOneBitLamb
};

// Whether the new momentum stands in the gradient's place.
inline bool exchangesMomenta(OptimizerKind kind) {
  return kind == OptimizerKind::kOneBitAdam ||
         kind == OptimizerKind::kOneBitLamb;
}

// What is kept of a parameter from step to step.
struct State {
  std::string name;
  // Empty: it has the parameter's shape. Else that of Factored without these,
  // which are one dimension of the model's.
  llvm::SmallVector<int64_t> without;
  int64_t model_without = -1;
  bool is_frozen = false;  // read, and not updated
  bool is_scalar = false;
};

struct Optimizer {
  OptimizerKind kind = OptimizerKind::kAdamW;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double momentum = 0;      // of SGD
  bool nesterov = false;    // of SGD with momentum
  double weight_decay = 0;  // into the gradient for SGD and Adam, decoupled for
                            // AdamW and Adafactor, into the direction for LAMB
  double rate_scale = 1;    // of the learning rate
  int64_t warmup = 0;       // of 1-bit optimizers: steps before

  // Of a parameter with these rows and columns, which only Adafactor minds.
  llvm::SmallVector<State> states(const Factored& factored) const;
};

// Scalars of a step, tensor<f32>: the learning rate; what Adam's moments are
// multiplied with because they began at zero. Null: not needed.
struct StepScalars {
  mlir::Value learning_rate;
  mlir::Value first_correction;   // 1 / (1 - beta1^step)
  mlir::Value second_correction;  // 1 / sqrt(1 - beta2^step)
  mlir::Value decay;              // of Adafactor's second moment
  mlir::Value fresh_correction;   // of 1-bit LAMB's second one, as the others
};
inline constexpr mlir::Value StepScalars::* kStepScalars[] = {
    &StepScalars::learning_rate, &StepScalars::first_correction,
    &StepScalars::second_correction, &StepScalars::decay,
    &StepScalars::fresh_correction};

// The corrections of step `step` (a scalar i64, 1 at the first).
void buildCorrections(nn::MathBuilder& math, mlir::OpBuilder& builder,
                      const Optimizer& optimizer, mlir::Value step,
                      StepScalars& scalars);

// beta1 * momentum + (1 - beta1) * gradient.
mlir::Value buildMomentum(nn::MathBuilder& math, const Optimizer& optimizer,
                          mlir::Value momentum, mlir::Value gradient);

// The new parameter, then its new states that are not frozen, in the order of
// Optimizer::states. The gradient has the parameter's type; in its place may
// stand the new momentum (exchangesMomenta), which is no new state.
llvm::SmallVector<mlir::Value> buildUpdate(
    nn::MathBuilder& math, const Optimizer& optimizer, const Factored& factored,
    mlir::Value parameter, mlir::Value gradient,
    llvm::ArrayRef<mlir::Value> states, const StepScalars& scalars);

}  // namespace partita::autodiff

#endif  // PARTITA_COMPILER_AUTODIFF_OPTIMIZER_H_
