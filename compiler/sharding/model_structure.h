// Queries on a whole model, used to name its dimensions.
#ifndef PARTITA_COMPILER_SHARDING_MODEL_STRUCTURE_H_
#define PARTITA_COMPILER_SHARDING_MODEL_STRUCTURE_H_

#include <map>
#include <set>

#include "compiler/sharding/dim_classes.h"
#include "llvm/ADT/DenseSet.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace partita::sharding {

class ModelStructure {
 public:
  // Keeps a reference to the stored values of `classes`.
  ModelStructure(mlir::ModuleOp module, const DimClasses& classes);

  // True if a value is computed from stored data and constants alone.
  bool isStored(mlir::Value value) const { return stored_.contains(value); }
  // True for a convolution of two activations; see StoredValues.
  bool isKernelGradient(nn::ConvOp op) const {
    return stored_.isKernelGradient(op);
  }
  // True if the argument is an input of @main: each run passes a new value.
  bool isInput(mlir::BlockArgument argument) const;
  // True if only elementwise work and data movement lie between integer inputs
  // and this value.
  bool isMadeOfIntegerInputs(mlir::Value value) const;
  // True if the operands of a sum come from different sources, and neither is
  // stored data. Elementwise work and data movement keep the source.
  bool joinsStreams(mlir::arith::AddFOp op) const;

  // True if a value is a product with a parameter, optionally scaled, shifted
  // or normalised to probabilities.
  bool isProductWithBias(mlir::Value value) const;
  // Returns the single source of a value: the value, other than stored data,
  // from which elementwise work and data movement make it. Null if there are
  // several.
  mlir::Value sourceOf(mlir::Value value) const;

  // Products and convolutions with parameters map widths to widths. `madeInto`
  // maps the first segment of each contracted dimension to the first segments
  // of the output dimensions; `madeFrom` is the inverse.
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

  const StoredValues& stored_;
  std::map<int, std::set<int>> made_into_, made_from_;
};

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_MODEL_STRUCTURE_H_
