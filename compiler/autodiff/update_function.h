// Builds the functions by which a step updates one parameter.
#ifndef PARTITA_COMPILER_AUTODIFF_UPDATE_FUNCTION_H_
#define PARTITA_COMPILER_AUTODIFF_UPDATE_FUNCTION_H_

#include "compiler/autodiff/optimizer.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::autodiff {

// Scalars that all updates of a step take; null if not needed.
struct StepValues {
  StepScalars scalars;
  mlir::Value factor;  // factor of all gradients
  mlir::Value finite;  // i1: false skips the update

  // Returns the non-null scalars, in the order of the function's arguments.
  llvm::SmallVector<mlir::Value> all() const;
};

// Selects `updated` if the scalar `finite` is true, else `old`.
mlir::Value chooseFinite(nn::MathBuilder& math, mlir::Value finite,
                         mlir::Value updated, mlir::Value old);

// Returns `x` with zeros where `parameter`, of the same shape, has them.
mlir::Value zeroWhereZero(nn::MathBuilder& math, mlir::Value parameter,
                          mlir::Value x);

// Makes a private function (parameter, gradient or momentum, states,
// StepValues::all) -> (parameter in type `stored` if it differs from the
// updated type, new parameter, states that are not frozen). Parameters of equal
// shape need functions of their own, because they may have different dimension
// names; only the same parameter of equal layers shares one. Functions that are
// equal when the program is divided are merged then.
mlir::func::FuncOp makeUpdate(mlir::ModuleOp module, llvm::StringRef name,
                              const Optimizer& optimizer,
                              const Factored& factored,
                              llvm::ArrayRef<mlir::Value> operands,
                              const StepValues& values, mlir::Type stored);

// Makes a private function (momentum, gradient) -> momentum.
mlir::func::FuncOp makeMomentum(mlir::ModuleOp module, llvm::StringRef name,
                                const Optimizer& optimizer,
                                llvm::ArrayRef<mlir::Value> operands);

}  // namespace partita::autodiff

#endif  // PARTITA_COMPILER_AUTODIFF_UPDATE_FUNCTION_H_
