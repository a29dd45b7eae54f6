// The functions by which a step updates one parameter.
#ifndef PARTITA_COMPILER_AUTODIFF_UPDATE_FUNCTION_H_
#define PARTITA_COMPILER_AUTODIFF_UPDATE_FUNCTION_H_

#include "compiler/autodiff/optimizer.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::autodiff {

// Scalars that all updates of a step take; null: not needed.
struct StepValues {
  StepScalars scalars;
  mlir::Value factor;  // what gradients are multiplied with
  mlir::Value finite;  // i1: whether there is an update

  // Those that are needed, in the order in which the function takes them.
  llvm::SmallVector<mlir::Value> all() const;
};

// `finite` is a scalar: the new value or the old one.
mlir::Value chooseFinite(nn::MathBuilder& math, mlir::Value finite,
                         mlir::Value updated, mlir::Value old);

// A private function (parameter, gradient or momentum, states, StepValues::all)
// -> the parameter as it is `stored` if that is another type than it is updated
// in, the new parameter, states that are not frozen. One for each parameter:
// dimensions of parameters of one shape are not one. Those that are still equal
// when the program is divided become one then.
mlir::func::FuncOp makeUpdate(mlir::ModuleOp module, llvm::StringRef name,
                              const Optimizer& optimizer,
                              const Factored& factored,
                              llvm::ArrayRef<mlir::Value> operands,
                              const StepValues& values, mlir::Type stored);

// A private function (momentum, gradient) -> momentum.
mlir::func::FuncOp makeMomentum(mlir::ModuleOp module, llvm::StringRef name,
                                const Optimizer& optimizer,
                                llvm::ArrayRef<mlir::Value> operands);

}  // namespace partita::autodiff

#endif  // PARTITA_COMPILER_AUTODIFF_UPDATE_FUNCTION_H_
