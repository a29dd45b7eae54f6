// What an operation's gradient is built from.
#ifndef PARTITA_COMPILER_AUTODIFF_GRADIENT_H_
#define PARTITA_COMPILER_AUTODIFF_GRADIENT_H_

#include "dialects/nn/math_builder.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/OpDefinition.h"

namespace partita::autodiff {

// The gradient of one operation while it is built. The operation's operands and
// results may be used as they are: what of them is kept from the forward pass,
// and what is computed again, is decided later.
class Gradient {
 public:
  // `results`: the gradient of each result, of the result's type; null where
  // none flows. `wanted`: which operands' gradients are asked for.
  Gradient(mlir::OpBuilder& builder, mlir::Operation* op,
           llvm::ArrayRef<mlir::Value> results, llvm::ArrayRef<bool> wanted)
      : math(builder, op->getLoc()),
        builder_(builder),
        op_(op),
        results_(results),
        wanted_(wanted),
        operands_(op->getNumOperands()) {}

  mlir::OpBuilder& builder() { return builder_; }
  mlir::Location loc() const { return op_->getLoc(); }
  mlir::Value operand(unsigned i) const { return op_->getOperand(i); }
  mlir::Value result(unsigned i = 0) const { return op_->getResult(i); }
  // Of result i; null where none flows (where the operation has one result it
  // is never null).
  mlir::Value ofResult(unsigned i = 0) const { return results_[i]; }
  bool wants(unsigned i) const { return wanted_[i]; }

  // Operand i's gradient, of its type, wanted, and not given before.
  void add(unsigned i, mlir::Value gradient) { operands_[i] = gradient; }
  llvm::ArrayRef<mlir::Value> operands() const { return operands_; }

  nn::MathBuilder math;

 private:
  mlir::OpBuilder& builder_;
  mlir::Operation* op_;
  llvm::ArrayRef<mlir::Value> results_;
  llvm::ArrayRef<bool> wanted_;
  llvm::SmallVector<mlir::Value> operands_;
};

// Attaches the gradients of nn's, arith's and math's operations. An operation
// of floats without one cannot be differentiated.
void registerGradients(mlir::DialectRegistry& registry);

}  // namespace partita::autodiff

#include "compiler/autodiff/gradient.h.inc"

#endif  // PARTITA_COMPILER_AUTODIFF_GRADIENT_H_
