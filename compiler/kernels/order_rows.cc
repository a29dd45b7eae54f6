// Puts the rows of grouped products in order; see passes.td.
#include <limits>

#include "compiler/kernels/library_products.h"
#include "compiler/kernels/passes.h"
#include "dialects/nn/ordered.h"
#include "dialects/nn/row_share.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::kernels {

#define GEN_PASS_DEF_ORDERROWSPASS
#include "compiler/kernels/passes.h.inc"

namespace {

using mlir::Value;

class OrderRows : public impl::OrderRowsPassBase<OrderRows> {
 public:
  void runOnOperation() override {
    getOperation().walk([&](nn::GroupedDotOp op) {
      mlir::OpBuilder builder(op);
      const Value order =
          orderOf(builder, op, op.getIds(), op.getW().getType().getDimSize(0));
      if (!order) return;
      replace(op, nn::OrderedDotOp::create(builder, op.getLoc(), op.getType(),
                                           op.getX(), order, op.getW(),
                                           op.getTransposed()));
    });
    getOperation().walk([&](nn::GroupedDotWeightGradOp op) {
      mlir::OpBuilder builder(op);
      const Value order =
          orderOf(builder, op, op.getIds(), op.getType().getDimSize(0));
      if (!order) return;
      replace(op, nn::OrderedDotWeightGradOp::create(
                      builder, op.getLoc(), op.getType(), op.getX(), order,
                      op.getResultGrad()));
    });
  }

 private:
  // Null if kernels do not support the product.
  Value orderOf(mlir::OpBuilder& builder, mlir::Operation* op, Value ids,
                int64_t matrices) {
    const auto type = llvm::cast<mlir::RankedTensorType>(ids.getType());
    const int64_t size = nn::sizeOfRowOrder(matrices, type.getDimSize(0));
    if (!isLibraryProduct(op) || size > std::numeric_limits<int32_t>::max())
      return nullptr;
    return nn::OrderRowsOp::create(
        builder, op->getLoc(),
        mlir::RankedTensorType::get({size}, builder.getI32Type()), ids,
        matrices);
  }

  template <typename Op>
  void replace(mlir::Operation* op, Op ordered) {
    if (const mlir::Attribute share = op->getAttr(nn::kRowShareAttr))
      ordered->setAttr(nn::kRowShareAttr, share);
    op->replaceAllUsesWith(ordered);
    op->erase();
    ++products;
  }
};

}  // namespace
}  // namespace partita::kernels
