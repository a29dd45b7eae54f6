// Which values of a model stay in f32 whatever its precision: those that follow
// from positions, integers, constants and buffers alone (angles of rotary
// embeddings, masks), and the running statistics of batch norms.
#ifndef PARTITA_COMPILER_AUTODIFF_EXACT_VALUES_H_
#define PARTITA_COMPILER_AUTODIFF_EXACT_VALUES_H_

#include <set>
#include <string>
#include <utility>

#include "llvm/ADT/DenseSet.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::autodiff {

// Of a module, whose values and functions stay the same ones as long as this is
// used; their types may change. Layers are seen from all of their calls.
class ExactValues {
 public:
  explicit ExactValues(mlir::ModuleOp module);

  bool contains(mlir::Value value) const { return values_.contains(value); }
  // Whether all results of an operation are; true where it has none.
  bool containsResults(mlir::Operation* op) const;
  // Whether an argument or a result of a function is.
  bool argument(llvm::StringRef function, unsigned index) const {
    return !inexact_arguments_.count({function.str(), index});
  }
  bool result(llvm::StringRef function, unsigned index) const {
    return statistics_.count({function.str(), index}) > 0;
  }

 private:
  using Places = std::set<std::pair<std::string, unsigned>>;

  bool isStatistic(mlir::Value value) const;
  void findStatistics(mlir::func::FuncOp function);
  void findArguments(mlir::func::FuncOp function);

  llvm::DenseSet<mlir::Value> values_;
  Places statistics_, inexact_arguments_;
};

}  // namespace partita::autodiff

#endif  // PARTITA_COMPILER_AUTODIFF_EXACT_VALUES_H_
