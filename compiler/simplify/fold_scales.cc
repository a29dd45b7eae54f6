// Folds scales and shifts per feature into the convolution before them; see
// passes.td.
#include "compiler/simplify/passes.h"
#include "compiler/simplify/scaled_conv.h"
#include "compiler/simplify/stored_values.h"

namespace partita::simplify {

#define GEN_PASS_DEF_FOLDSCALESPASS
#include "compiler/simplify/passes.h.inc"

namespace {

using mlir::OpBuilder;
using mlir::Value;
using mlir::func::FuncOp;
namespace arith = mlir::arith;

class FoldScalesPass : public impl::FoldScalesPassBase<FoldScalesPass> {
 public:
  void runOnOperation() override {
    auto main = getOperation().lookupSymbol<FuncOp>("main");
    if (!main || main.isExternal()) {
      getOperation().emitError(
          "expected a function @main with a body, found none");
      return signalPassFailure();
    }
    const CallGraph graph(main);
    // Stays valid: operations are erased after all functions.
    const StoredValues stored(main, graph);
    for (FuncOp function : graph.functions) {
      if (function.isExternal()) continue;
      mlir::SmallVector<mlir::Operation*> operations;
      for (mlir::Operation& op : function.front()) operations.push_back(&op);
      for (mlir::Operation* op : operations) fold(op, stored);
    }
    for (FuncOp function : graph.functions)
      if (!function.isExternal()) eraseDeadOperations(function);
  }

 private:
  // Folds a product or sum of a convolution and a stored vector.
  void fold(mlir::Operation* op, const StoredValues& stored) {
    if (!mlir::isa<arith::MulFOp, arith::AddFOp>(op)) return;
    for (unsigned operand : {0u, 1u}) {
      if (!stored.contains(op->getOperand(operand))) continue;
      OpBuilder builder(op);
      std::optional<ConvWithBias> conv =
          ConvWithBias::match(builder, op->getOperand(1 - operand));
      if (!conv || (mlir::isa<arith::AddFOp>(op) && !conv->bias)) continue;
      const Value vector =
          vectorAlong(builder, op->getOperand(operand), conv->feature());
      if (!vector) continue;
      mlir::isa<arith::MulFOp>(op) ? foldScale(builder, op, *conv, vector)
                                   : foldShift(builder, op, *conv, vector);
      return;
    }
  }

  // (conv + bias) * scale = scaled conv + bias * scale
  void foldScale(OpBuilder& builder, mlir::Operation* op, ConvWithBias conv,
                 Value scale) {
    Value bias;
    if (conv.bias)
      bias = arith::MulFOp::create(builder, op->getLoc(), conv.bias, scale);
    replace(builder, op, buildScaledConv(builder, conv.conv, scale), bias,
            conv.feature());
    ++scales;
  }

  // (conv + bias) + shift = conv + (bias + shift)
  void foldShift(OpBuilder& builder, mlir::Operation* op, ConvWithBias conv,
                 Value shift) {
    const Value bias =
        arith::AddFOp::create(builder, op->getLoc(), conv.bias, shift);
    // A new one: the sum that is replaced still uses the convolution.
    replace(builder, op, builder.clone(*conv.conv)->getResult(0), bias,
            conv.feature());
    ++shifts;
  }

  static void replace(OpBuilder& builder, mlir::Operation* op, Value conv,
                      Value bias, int64_t feature) {
    Value result = conv;
    if (bias) {
      const Value repeated = nn::BroadcastOp::create(
          builder, op->getLoc(), conv.getType(), bias, feature);
      result = arith::AddFOp::create(builder, op->getLoc(), conv, repeated);
    }
    op->getResult(0).replaceAllUsesWith(result);
  }
};

}  // namespace
}  // namespace partita::simplify
