// The gradient of a function as two functions: one that also returns what the
// other needs of it.
#ifndef PARTITA_COMPILER_AUTODIFF_FUNCTION_GRADIENTS_H_
#define PARTITA_COMPILER_AUTODIFF_FUNCTION_GRADIENTS_H_

#include <map>
#include <tuple>

#include "compiler/autodiff/recompute.h"
#include "compiler/autodiff/reverse.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"

namespace partita::autodiff {

// Makes and remembers the functions, one pair for each way in which a function
// is called. Operations with a policy of their own follow it, others
// `recompute`.
class FunctionGradients {
 public:
  FunctionGradients(mlir::ModuleOp module, Recompute recompute)
      : module_(module), symbols_(module), recompute_(recompute) {}

  // As DifferentiateCall: puts a call of the forward function in place of
  // `call` and one of the backward function at the builder.
  mlir::FailureOr<llvm::SmallVector<mlir::Value>> differentiate(
      mlir::OpBuilder& builder, mlir::func::CallOp call,
      llvm::ArrayRef<mlir::Value> results, llvm::ArrayRef<bool> wanted);

 private:
  // backward(kept arguments, saved values, gradients of results) gives the
  // gradients of `given` arguments.
  struct Pair {
    mlir::func::FuncOp forward, backward;
    llvm::SmallVector<unsigned> kept;   // arguments
    llvm::SmallVector<unsigned> given;  // arguments
  };
  using Key = std::tuple<std::string, std::vector<bool>, std::vector<bool>>;

  mlir::FailureOr<const Pair*> pairOf(mlir::func::CallOp call,
                                      llvm::ArrayRef<mlir::Value> results,
                                      llvm::ArrayRef<bool> wanted);
  mlir::FailureOr<Pair> make(mlir::func::FuncOp function,
                             llvm::ArrayRef<bool> results,
                             llvm::ArrayRef<bool> wanted);

  mlir::ModuleOp module_;
  mlir::SymbolTable symbols_;
  const Recompute recompute_;
  std::map<Key, Pair> pairs_;
};

}  // namespace partita::autodiff

#endif  // PARTITA_COMPILER_AUTODIFF_FUNCTION_GRADIENTS_H_
