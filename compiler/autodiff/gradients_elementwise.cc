// Gradients of arith and math operations.
#include "compiler/autodiff/gradient.h"
#include "compiler/autodiff/gradients.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace partita::autodiff {
namespace {

using mlir::LogicalResult;
using mlir::Value;

// An operation of one result whose operand i gets, where it is wanted, what
// `Rule::of(gradient, i)` builds of the result's gradient.
template <typename Rule, typename Op>
struct Elementwise : GradientOpInterface::ExternalModel<Rule, Op> {
  LogicalResult buildGradient(mlir::Operation* op, Gradient& gradient) const {
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      if (gradient.wants(i)) gradient.add(i, Rule::of(gradient, i));
    return mlir::success();
  }
};

struct Add : Elementwise<Add, mlir::arith::AddFOp> {
  static Value of(Gradient& gradient, unsigned) { return gradient.ofResult(); }
};

struct Multiply : Elementwise<Multiply, mlir::arith::MulFOp> {
  static Value of(Gradient& gradient, unsigned i) {
    return gradient.math.multiply(gradient.ofResult(), gradient.operand(1 - i));
  }
};

}  // namespace

void registerElementwiseGradients(mlir::MLIRContext* context) {
  mlir::arith::AddFOp::attachInterface<Add>(*context);
  mlir::arith::MulFOp::attachInterface<Multiply>(*context);
}

}  // namespace partita::autodiff
