// Finds the values of a model that stay in f32 in any precision: values
// computed from positions, integers, constants and buffers alone (angles of
// rotary embeddings, masks), the running statistics of batch norms, and numbers
// that layers return for buffers (ranges of activations).
#ifndef PARTITA_COMPILER_AUTODIFF_EXACT_VALUES_H_
#define PARTITA_COMPILER_AUTODIFF_EXACT_VALUES_H_

#include <set>
#include <string>
#include <utility>

#include "llvm/ADT/DenseSet.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::autodiff {

// Values and functions of the module must not be replaced while this is in use;
// types may change. A layer is exact only if it is so at all of its calls.
class ExactValues {
 public:
  explicit ExactValues(mlir::ModuleOp module);

  bool contains(mlir::Value value) const { return values_.contains(value); }
  // True if all results of an operation are exact, or if it has none.
  bool containsResults(mlir::Operation* op) const;
  // True if this argument or result of a function is exact.
  bool containsArgument(llvm::StringRef function, unsigned index) const {
    return !inexact_arguments_.count({function.str(), index});
  }
  bool containsResult(llvm::StringRef function, unsigned index) const {
    return statistics_.count({function.str(), index}) > 0;
  }

 private:
  using Places = std::set<std::pair<std::string, unsigned>>;

  bool isStatistic(mlir::Value value) const;
  bool isUpdate(mlir::Value value) const;
  void findUpdates(mlir::func::FuncOp function);
  void findStatistics(mlir::func::FuncOp function);
  void findArguments(mlir::func::FuncOp function);

  llvm::DenseSet<mlir::Value> values_;
  llvm::DenseSet<mlir::Value> updates_;  // returned as new numbers of buffers
  Places statistics_, inexact_arguments_;
};

}  // namespace partita::autodiff

#endif  // PARTITA_COMPILER_AUTODIFF_EXACT_VALUES_H_
