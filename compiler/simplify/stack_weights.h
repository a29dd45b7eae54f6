// Weights of equal layers as one tensor with a layer per index of dimension 0.
#ifndef PARTITA_COMPILER_SIMPLIFY_STACK_WEIGHTS_H_
#define PARTITA_COMPILER_SIMPLIFY_STACK_WEIGHTS_H_

#include <string>

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

  mlir::func::FuncOp main_;
  mlir::SmallVector<mlir::BlockArgument> replaced_;
};

}  // namespace partita::simplify

#endif  // PARTITA_COMPILER_SIMPLIFY_STACK_WEIGHTS_H_
