// Appends the exchange and local steps of 0/1 Adam to @main.
#ifndef PARTITA_COMPILER_AUTODIFF_ZERO_ONE_STEP_H_
#define PARTITA_COMPILER_AUTODIFF_ZERO_ONE_STEP_H_

#include "compiler/autodiff/training_signature.h"
#include "compiler/autodiff/zero_one_adam.h"

namespace partita::autodiff {

class ZeroOneStep {
 public:
  // Adds the sums of rates to `signature`. `scalars` are of this step.
  ZeroOneStep(mlir::func::FuncOp main, nn::Signature& signature,
              OptimizerKind kind, const StepScalars& scalars);

  // Returns the function of this name for a parameter, made by the second
  // argument if there is none yet.
  using FunctionOf = llvm::function_ref<mlir::func::FuncOp(
      llvm::StringRef name, llvm::function_ref<mlir::func::FuncOp()> make)>;

  // Lets the model read the device's own copy of a parameter, and updates it.
  // `updated` is the parameter, or its master copy.
  void update(nn::Signature& signature, const Trained& trained,
              const Optimizer& optimizer, mlir::Value updated,
              FunctionOf functionOf);

 private:
  mlir::func::FuncOp main_;
  const OptimizerKind kind_;
  mlir::Value rate_, second_correction_;
  mlir::Value rate_sum_, next_rate_sum_, next_corrected_rate_sum_;
};

}  // namespace partita::autodiff

#endif  // PARTITA_COMPILER_AUTODIFF_ZERO_ONE_STEP_H_
