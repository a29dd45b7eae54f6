// Equivalence classes of the dimensions of all values of a module.
#ifndef PARTITA_COMPILER_SHARDING_DIM_CLASSES_H_
#define PARTITA_COMPILER_SHARDING_DIM_CLASSES_H_

#include <vector>

#include "compiler/core/factor_classes.h"
#include "compiler/sharding/stored_values.h"
#include "dialects/nn/sharding_rule.h"
#include "llvm/ADT/DenseMap.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::sharding {

// Dimensions are united by the sharding rules of operations and through calls.
// The module must not change while this object is in use.
class DimClasses {
 public:
  explicit DimClasses(mlir::ModuleOp module);

  // Returns the classes of the segments of a dimension; empty for size 1.
  std::vector<int> segmentsOf(mlir::Value value, int64_t dim) const;
  // Returns the classes of the segments of a factor of the operation's rule.
  std::vector<int> segmentsOf(mlir::Operation* op, int factor) const;
  const nn::ShardingRule* ruleOf(mlir::Operation* op) const;
  const StoredValues& stored() const { return stored_; }

  int64_t sizeOf(int segment) const { return classes_.SegmentSize(segment); }
  std::vector<std::pair<int, int>> linked() const {
    return classes_.LinkedSegments();
  }

 private:
  struct Factors {
    nn::ShardingRule rule;
    std::vector<int> dims;  // one per factor
  };

  const std::vector<int>& dimsOf(mlir::Value value);
  void unify(mlir::Value a, mlir::Value b);
  void visit(mlir::Operation* op);
  void visitTensor(mlir::Value value, const nn::TensorFactors& tensor,
                   const Factors& factors, bool links_windows);
  void linkJoined(mlir::Operation* op);

  StoredValues stored_;
  core::FactorClasses classes_;
  llvm::DenseMap<mlir::Value, std::vector<int>> dims_;
  llvm::DenseMap<mlir::Operation*, Factors> factors_;
};

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_DIM_CLASSES_H_
