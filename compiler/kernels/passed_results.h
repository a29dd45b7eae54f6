// Changes what private functions return to other private functions.
#ifndef PARTITA_COMPILER_KERNELS_PASSED_RESULTS_H_
#define PARTITA_COMPILER_KERNELS_PASSED_RESULTS_H_

#include <optional>
#include <utility>

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::kernels {

// Results of private functions that only other private functions take, as a
// layer's forward pass saves values for its backward pass.
class PassedResults {
 public:
  explicit PassedResults(mlir::ModuleOp module);

  // Lets `function` return `value` as result `index`. `restore` computes the
  // former result from `value` at the start of the functions that take it.
  // Returns false, and changes nothing, if the result has other readers, or if
  // these functions take other values as well.
  bool replace(
      mlir::func::FuncOp function, unsigned index, mlir::Value value,
      llvm::function_ref<mlir::Value(mlir::OpBuilder&, mlir::Value)> restore);

 private:
  // Arguments of private functions.
  using Arguments = llvm::SetVector<std::pair<mlir::func::FuncOp, unsigned>>;

  std::optional<Arguments> readersOf(mlir::func::FuncOp function,
                                     unsigned index);

  mlir::ModuleOp module_;
  const llvm::StringMap<llvm::SmallVector<mlir::func::CallOp>> calls_;
};

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_PASSED_RESULTS_H_
