// Weights of equal layers as one tensor with a layer per index of dimension 0.
#ifndef PARTITA_COMPILER_SIMPLIFY_STACK_WEIGHTS_H_
#define PARTITA_COMPILER_SIMPLIFY_STACK_WEIGHTS_H_

#include <string>

#include "llvm/ADT/DenseSet.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::simplify {

// The name of weights whose names differ in their index alone, with `*` for it:
// "e.*.up.weight" for "e.0.up.weight", "e.1.up.weight". Otherwise the first
// name.
std::string nameOfParts(mlir::ArrayRef<std::string> names);

// Collects replaced arguments of @main.
class WeightStacker {
 public:
  explicit WeightStacker(mlir::func::FuncOp main) : main_(main) {}

  // Says which values the stacked ones will replace. An argument becomes a part
  // only if everything computed from it ends in these: otherwise it would stay,
  // beside its copy.
  void setReplaced(mlir::ArrayRef<mlir::Value> values);

  // Returns [count, ...] of values of one type. Values that are all slices of
  // one tensor, in order, give this tensor. Arguments of @main from files,
  // which have no other use, become one argument with `nn.parts`. Others are
  // concatenated at the builder's place.
  mlir::Value stack(mlir::OpBuilder& builder, mlir::Location loc,
                    mlir::ArrayRef<mlir::Value> values);

  // Erases arguments without uses that `stack` replaced.
  llvm::LogicalResult eraseReplaced();

 private:
  bool areParts(mlir::ArrayRef<mlir::Value> values);
  // True if nothing uses the argument once `results_` have no uses.
  bool becomesUnused(mlir::BlockArgument argument) const;

  mlir::func::FuncOp main_;
  llvm::DenseSet<mlir::Value> results_;
  mlir::SmallVector<mlir::BlockArgument> replaced_;
};

}  // namespace partita::simplify

#endif  // PARTITA_COMPILER_SIMPLIFY_STACK_WEIGHTS_H_
