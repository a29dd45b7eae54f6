// Questions about a whole model that naming its dimensions asks.
#ifndef PARTITA_COMPILER_SHARDING_MODEL_STRUCTURE_H_
#define PARTITA_COMPILER_SHARDING_MODEL_STRUCTURE_H_

#include <map>
#include <set>

#include "compiler/sharding/dim_classes.h"
#include "compiler/sharding/view_parameters.h"
#include "llvm/ADT/DenseSet.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace partita::sharding {

class ModelStructure {
 public:
  ModelStructure(mlir::ModuleOp module, const DimClasses& classes);

  // Whether a value is computed from stored data and constants alone.
  bool isStored(mlir::Value value) const { return stored_.contains(value); }
  // Whether it is an argument of @main that is given anew at each run.
  bool isInput(mlir::BlockArgument argument) const;
  // Whether only elementwise work and data movement lies between integer inputs
  // and this value.
  bool isMadeOfIntegerInputs(mlir::Value value) const;
  // Whether a sum joins two values that are not made of the same by elementwise
  // work and data movement, and neither of them of stored data.
  bool joinsStreams(mlir::arith::AddFOp op) const;

  // Whether a value is a product with a parameter, scaled, shifted or
  // normalised to probabilities at most.
  bool isProductWithBias(mlir::Value value) const;
  // The one value, other than stored data, that this one is made of by
  // elementwise work and data movement; null where there are several.
  mlir::Value sourceOf(mlir::Value value) const;

  // By products and convolutions with parameters: the first segments of the
  // dimensions that this one is summed over to make, and of those that are
  // summed over to make this one.
  const std::map<int, std::set<int>>& madeInto() const { return made_into_; }
  const std::set<int>& madeInto(int segment) const {
    return setOf(made_into_, segment);
  }
  const std::set<int>& madeFrom(int segment) const {
    return setOf(made_from_, segment);
  }

 private:
  static const std::set<int>& setOf(const std::map<int, std::set<int>>& sets,
                                    int segment);
  void addContraction(mlir::Operation* op, const DimClasses& classes);
  void addSources(mlir::Value value, llvm::DenseSet<mlir::Value>& sources,
                  llvm::DenseSet<mlir::Value>& seen) const;

  Callers callers_;
  llvm::DenseSet<mlir::Value> stored_;
  std::map<int, std::set<int>> made_into_, made_from_;
};

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_MODEL_STRUCTURE_H_
