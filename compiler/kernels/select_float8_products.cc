// Turns products of factors that are rounded to 8 bits into library calls that
// read the bytes; see passes.td.
#include <algorithm>
#include <optional>

#include "compiler/kernels/float8_factors.h"
#include "compiler/kernels/library_products.h"
#include "compiler/kernels/passes.h"
#include "dialects/exec/dialect.h"
#include "dialects/nn/math_builder.h"
#include "dialects/nn/product_epilogue.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::kernels {

#define GEN_PASS_DEF_SELECTFLOAT8PRODUCTSPASS
#include "compiler/kernels/passes.h.inc"

namespace {

using llvm::SmallVector;
using mlir::Operation;
using mlir::RankedTensorType;
using mlir::Value;

RankedTensorType typeOf(Value value) {
  return llvm::cast<RankedTensorType>(value.getType());
}

// The factor's bytes, with contracted dimensions last.
Value orderedBytes(mlir::OpBuilder& builder, const Float8Factor& factor) {
  Value bytes = factor.bytes;
  for (Operation* move : llvm::reverse(factor.moves)) {
    Operation* const moved = builder.clone(*move);
    moved->setOperand(0, bytes);
    moved->getResult(0).setType(
        typeOf(move->getResult(0)).clone(typeOf(bytes).getElementType()));
    bytes = moved->getResult(0);
  }
  if (llvm::is_sorted(factor.order)) return bytes;
  return nn::TransposeOp::create(builder, bytes.getLoc(), bytes, factor.order);
}

class SelectFloat8Products
    : public impl::SelectFloat8ProductsPassBase<SelectFloat8Products> {
 public:
  using SelectFloat8ProductsPassBase::SelectFloat8ProductsPassBase;

  void runOnOperation() override {
    SmallVector<nn::DotGeneralOp> dots;
    getOperation().walk([&](nn::DotGeneralOp op) { dots.push_back(op); });
    for (nn::DotGeneralOp op : dots) select(op);
  }

 private:
  void select(nn::DotGeneralOp op) {
    const std::optional<Float8Factors> factors = matchFloat8Factors(op);
    if (!factors || !isLibraryProduct(op)) return;
    const auto& [lhs, rhs] = *factors;
    const nn::ProductEpilogue bias = nn::epilogueOf(op, /*residuals=*/false);
    mlir::OpBuilder builder(bias ? bias.last : op);
    nn::MathBuilder math(builder, op.getLoc());
    const Value scale = math.multiply(math.reshape(lhs.scale, {1}),
                                      math.reshape(rhs.scale, {1}));
    const int64_t depth = lhs.contracted;
    auto gemm = exec::GemmOp::create(
        builder, op.getLoc(), op.getType(), orderedBytes(builder, lhs),
        orderedBytes(builder, rhs), scale, Value(), bias.bias, Value(),
        /*lhs_unsigned=*/false, {1, lhs.free, rhs.free, depth}, {0, depth, 1},
        {0, 1, depth}, mlir::IntegerAttr(), exec::Activation::kNone);
    replace(op, gemm.getResult(), bias.last);
    ++products;
  }

  // Replaces the result of `last`, or of `op` if it is null, and erases what
  // nothing reads any more.
  static void replace(nn::DotGeneralOp op, Value result, Operation* last) {
    Operation* dead = last ? last : op;
    dead->getResult(0).replaceAllUsesWith(result);
    SmallVector<Operation*> open = {dead};
    while (!open.empty()) {
      Operation* const next = open.pop_back_val();
      if (!next->use_empty() || !mlir::isPure(next)) continue;
      llvm::SmallSetVector<Operation*, 4> producers;
      for (Value operand : next->getOperands())
        if (Operation* producer = operand.getDefiningOp())
          producers.insert(producer);
      open.erase(std::remove(open.begin(), open.end(), next), open.end());
      next->erase();
      for (Operation* producer : producers)
        if (producer->use_empty()) open.push_back(producer);
    }
  }
};

}  // namespace
}  // namespace partita::kernels
