// Builds the gradient of a function as two functions: forward and backward. The
// forward function also returns the values that backward needs.
#ifndef PARTITA_COMPILER_AUTODIFF_FUNCTION_GRADIENTS_H_
#define PARTITA_COMPILER_AUTODIFF_FUNCTION_GRADIENTS_H_

#include <map>
#include <tuple>

#include "compiler/autodiff/recompute.h"
#include "compiler/autodiff/reverse.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"

namespace partita::autodiff {

// Builds and caches the functions, one pair per combination of function,
// results with gradients and wanted arguments. An operation with a recompute
// policy of its own follows it; others follow `recompute`.
class FunctionGradients {
 public:
  FunctionGradients(mlir::ModuleOp module, Recompute recompute)
      : module_(module), symbols_(module), recompute_(recompute) {}

  // Implements DifferentiateCall: replaces `call` by a call of the forward
  // function, and inserts a call of the backward function at the builder.
  mlir::FailureOr<llvm::SmallVector<mlir::Value>> differentiate(
      mlir::OpBuilder& builder, mlir::func::CallOp call,
      llvm::ArrayRef<mlir::Value> results, llvm::ArrayRef<bool> wanted);

 private:
  // backward(kept arguments, saved values, gradients of results) returns the
  // gradients of the arguments `given`.
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
