// The context in which an operation's gradient is built.
#ifndef PARTITA_COMPILER_AUTODIFF_GRADIENT_H_
#define PARTITA_COMPILER_AUTODIFF_GRADIENT_H_

#include "dialects/nn/math_builder.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/OpDefinition.h"

namespace partita::autodiff {

// The gradient of one operation under construction. It may use the operation's
// operands and results directly. Later steps decide which of them are saved
// from the forward pass and which are recomputed.
class Gradient {
 public:
  // `results`: the gradient of each result, of the result's type; null if none
  // flows. `wanted`: the operands whose gradients are needed.
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
  // Returns the gradient of result i; null if none flows. Never null if the
  // operation has a single result.
  mlir::Value ofResult(unsigned i = 0) const { return results_[i]; }
  bool wants(unsigned i) const { return wanted_[i]; }

  // Sets the gradient of operand i, in its type. Operand i must be wanted and
  // have no gradient yet.
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

// Attaches the gradients of operations of nn, arith and math. A float operation
// without one cannot be differentiated.
void registerGradients(mlir::DialectRegistry& registry);

}  // namespace partita::autodiff

#include "compiler/autodiff/gradient.h.inc"

#endif  // PARTITA_COMPILER_AUTODIFF_GRADIENT_H_
