// Moves activations and sums into the products beside them; see passes.td.
#include "compiler/kernels/passes.h"
#include "compiler/kernels/product_formulas.h"
#include "compiler/kernels/strided_view.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::kernels {

#define GEN_PASS_DEF_FUSEINTOPRODUCTSPASS
#include "compiler/kernels/passes.h.inc"

namespace {

namespace arith = mlir::arith;
using exec::GemmOp;
using llvm::SmallVector;
using mlir::Operation;
using mlir::RankedTensorType;
using mlir::Type;
using mlir::Value;

// cuBLASLt wants rows of pre-activations to begin at multiples of 8 elements.
constexpr int64_t kAlignedElements = 8;

RankedTensorType typeOf(Value value) {
  return llvm::cast<RankedTensorType>(value.getType());
}

// True for products of 16-bit floats, of one matrix and of aligned sizes,
// without other results.
bool isCandidate(GemmOp op) {
  const RankedTensorType type = typeOf(op.getResult());
  const auto aligned = [](int64_t size) {
    return size % kAlignedElements == 0;
  };
  return llvm::isa<mlir::FloatType>(type.getElementType()) &&
         type.getElementTypeBitWidth() == 16 && op.getSizes()[0] == 1 &&
         llvm::all_of(op.getSizes().drop_front(), aligned) &&
         op.getActivation() == exec::Activation::kNone && !op.getScale() &&
         !op.getResidual() && op->getNumResults() == 1;
}

// Erases `op` if nothing reads it, and then all but products that nothing else
// reads either.
void eraseUnused(Operation* op) {
  llvm::SetVector<Operation*> unused;
  if (op->use_empty()) unused.insert(op);
  while (!unused.empty()) {
    Operation* const next = unused.pop_back_val();
    const SmallVector<Value> operands(next->getOperands());
    next->erase();
    for (Value operand : operands)
      if (Operation* producer = operand.getDefiningOp();
          producer && producer->use_empty() && !llvm::isa<GemmOp>(producer) &&
          mlir::isPure(producer))
        unused.insert(producer);
  }
}

// True if no kernel would read the value from registers.
bool isStoredAnyway(Value value) {
  return llvm::none_of(value.getUsers(), [](Operation* user) {
    return mlir::OpTrait::hasElementwiseMappableTraits(user);
  });
}

// The values of a new product.
struct Form {
  Value preactivation;
  exec::Activation activation = exec::Activation::kNone;
  Type kept, lhs_sums, rhs_sums;
};

GemmOp createLike(mlir::OpBuilder& builder, GemmOp op, const Form& form) {
  auto created = GemmOp::create(
      builder, op.getLoc(), op.getResult().getType(), form.kept, form.lhs_sums,
      form.rhs_sums, op.getLhs(), op.getRhs(), op.getScale(), op.getZero(),
      op.getBias(), op.getResidual(), form.preactivation,
      op.getLhsUnsignedAttr(), op.getSizesAttr(), op.getLhsStridesAttr(),
      op.getRhsStridesAttr(), op.getGroupAttr(),
      exec::ActivationAttr::get(builder.getContext(), form.activation));
  created->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  return created;
}

class FuseIntoProducts
    : public impl::FuseIntoProductsPassBase<FuseIntoProducts> {
 public:
  using FuseIntoProductsPassBase::FuseIntoProductsPassBase;

  void runOnOperation() override {
    SmallVector<GemmOp> products;
    getOperation().walk([&](GemmOp op) { products.push_back(op); });
    for (GemmOp op : products)
      if (isCandidate(op) && !fuseActivation(op)) fuseGradient(op);
    SmallVector<nn::ReduceOp> reductions;
    getOperation().walk([&](nn::ReduceOp op) { reductions.push_back(op); });
    for (nn::ReduceOp op : reductions) fuseSums(op);
  }

 private:
  // gelu(product). Other readers get the product as the pre-activation.
  bool fuseActivation(GemmOp op) {
    for (Value formula : formulasOf(op.getResult())) {
      if (!isStoredAnyway(formula) || !isGelu(formula, op.getResult()))
        continue;
      mlir::OpBuilder builder(op);
      // Erases the formula's operations, to see who reads the product.
      Value placeholder = arith::ConstantOp::create(
                              builder, op.getLoc(),
                              builder.getZeroAttr(op.getResult().getType()))
                              .getResult();
      Operation* const last = formula.getDefiningOp();
      formula.replaceAllUsesWith(placeholder);
      eraseUnused(last);
      Form form;
      form.activation = exec::Activation::kGeluTanh;
      if (!op.getResult().use_empty()) form.kept = op.getResult().getType();
      const GemmOp fused = createLike(builder, op, form);
      Value result = fused->getResult(0);
      placeholder.replaceAllUsesWith(result);
      placeholder.getDefiningOp()->erase();
      if (form.kept) op.getResult().replaceAllUsesWith(fused->getResult(1));
      op.erase();
      ++activations;
      return true;
    }
    return false;
  }

  // product * gelu'(u).
  void fuseGradient(GemmOp op) {
    if (op.getBias()) return;
    for (Value formula : formulasOf(op.getResult())) {
      const Value input = geluGradientInput(formula, op.getResult());
      if (!input) continue;
      Operation* const last = formula.getDefiningOp();
      mlir::OpBuilder builder(last);
      Form form;
      form.activation = exec::Activation::kGeluTanh;
      form.preactivation = input;
      Value result = createLike(builder, op, form)->getResult(0);
      formula.replaceAllUsesWith(result);
      eraseUnused(last);
      op.erase();
      ++gradients;
      return;
    }
  }

  // The reduction, or the operation that rounds it to 16 bits.
  static Operation* lastOf(nn::ReduceOp op) {
    if (typeOf(op).getElementTypeBitWidth() == 16 || !op->hasOneUse())
      return op;
    Operation* const user = *op->user_begin();
    return llvm::isa<arith::TruncFOp>(user) ? user : op;
  }

  // The sums of one factor over the contracted dimension.
  void fuseSums(nn::ReduceOp op) {
    if (op.getKind() != nn::ReduceKind::sum) return;
    Value summed = op.getInput();
    if (auto extension = summed.getDefiningOp<arith::ExtFOp>())
      summed = extension.getIn();
    Operation* const last = lastOf(op);
    const RankedTensorType type = typeOf(last->getResult(0));
    if (type.getElementType() != typeOf(summed).getElementType()) return;
    const StridedView view = viewOf(summed);
    SmallVector<int64_t> kept;
    for (int64_t dim = 0; dim < typeOf(summed).getRank(); ++dim)
      if (!llvm::is_contained(op.getDims(), dim)) kept.push_back(dim);
    const auto rows = collapse(summed, view, op.getDims()),
               columns = collapse(summed, view, kept);
    if (!rows || !columns) return;
    for (Operation* user : view.base.getUsers()) {
      auto product = llvm::dyn_cast<GemmOp>(user);
      if (!product || !isCandidate(product) || product.getBias() ||
          product->getBlock() != last->getBlock() ||
          typeOf(product.getResult()).getElementType() !=
              type.getElementType() ||
          !comesBeforeUsers(product, last))
        continue;
      const llvm::ArrayRef<int64_t> sizes = product.getSizes(),
                                    lhs = product.getLhsStrides(),
                                    rhs = product.getRhsStrides();
      const auto is = [](const Extent& extent, int64_t size, int64_t stride) {
        return extent.size == size && extent.stride == stride;
      };
      Form form;
      if (product.getRhs() == view.base && is(*rows, sizes[3], rhs[1]) &&
          is(*columns, sizes[2], rhs[2]))
        form.rhs_sums = type;
      else if (product.getLhs() == view.base && is(*rows, sizes[3], lhs[2]) &&
               is(*columns, sizes[1], lhs[1]))
        form.lhs_sums = type;
      else
        continue;
      mlir::OpBuilder builder(product);
      GemmOp fused = createLike(builder, product, form);
      Value result = fused->getResult(0), sum = fused->getResult(1);
      product.getResult().replaceAllUsesWith(result);
      last->getResult(0).replaceAllUsesWith(sum);
      product.erase();
      eraseUnused(last);
      ++sums;
      return;
    }
  }

  static bool comesBeforeUsers(GemmOp product, Operation* op) {
    return llvm::all_of(op->getUsers(), [&](Operation* user) {
      Operation* const in_block = op->getBlock()->findAncestorOpInBlock(*user);
      return in_block && product->isBeforeInBlock(in_block);
    });
  }
};

}  // namespace
}  // namespace partita::kernels
