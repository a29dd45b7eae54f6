// The arithmetic of optimizers, one parameter at a time.
//
// Sources: SGD with momentum as in PyTorch; Adam (Kingma and Ba, 2015); AdamW
// (Loshchilov and Hutter, 2019); LAMB (You et al., 2020).
#ifndef PARTITA_COMPILER_AUTODIFF_OPTIMIZER_H_
#define PARTITA_COMPILER_AUTODIFF_OPTIMIZER_H_

#include <string>

#include "dialects/nn/math_builder.h"

namespace partita::autodiff {

enum class OptimizerKind { kSgd, kAdam, kAdamW, kLamb };

struct Optimizer {
  OptimizerKind kind = OptimizerKind::kAdamW;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double momentum = 0;      // of SGD
  double weight_decay = 0;  // into the gradient for SGD and Adam, decoupled for
                            // AdamW, into the direction for LAMB

  // The states it keeps of each parameter, of the parameter's shape.
  llvm::SmallVector<std::string> states() const;
};

// Scalars of a step, tensor<f32>: the learning rate; what Adam's moments are
// multiplied with because they began at zero.
struct StepScalars {
  mlir::Value learning_rate;
  mlir::Value first_correction;   // 1 / (1 - beta1^step)
  mlir::Value second_correction;  // 1 / sqrt(1 - beta2^step)
};

// The corrections of step `step` (a scalar i64, 1 at the first).
void buildCorrections(nn::MathBuilder& math, mlir::OpBuilder& builder,
                      const Optimizer& optimizer, mlir::Value step,
                      StepScalars& scalars);

// The new parameter, then its new states. All tensors have the parameter's
// type; `states` are in the order of Optimizer::states.
llvm::SmallVector<mlir::Value> buildUpdate(nn::MathBuilder& math,
                                           const Optimizer& optimizer,
                                           mlir::Value parameter,
                                           mlir::Value gradient,
                                           llvm::ArrayRef<mlir::Value> states,
                                           const StepScalars& scalars);

}  // namespace partita::autodiff

#endif  // PARTITA_COMPILER_AUTODIFF_OPTIMIZER_H_
