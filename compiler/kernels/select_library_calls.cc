// Turns dot_general and conv into library calls whose operands are read through
// strides; see passes.td.
#include <optional>

#include "compiler/kernels/byte_convolutions.h"
#include "compiler/kernels/library_products.h"
#include "compiler/kernels/passes.h"
#include "compiler/kernels/strided_view.h"
#include "dialects/nn/product_epilogue.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::kernels {

#define GEN_PASS_DEF_SELECTLIBRARYCALLSPASS
#include "compiler/kernels/passes.h.inc"

namespace {

using llvm::ArrayRef;
using llvm::SmallVector;
using mlir::RankedTensorType;
using mlir::Value;

RankedTensorType typeOf(Value value) {
  return llvm::cast<RankedTensorType>(value.getType());
}

SmallVector<int64_t> freeDims(Value value, ArrayRef<int64_t> batch,
                              ArrayRef<int64_t> contract) {
  SmallVector<int64_t> free;
  for (int64_t dim = 0; dim < typeOf(value).getRank(); ++dim)
    if (!llvm::is_contained(batch, dim) && !llvm::is_contained(contract, dim))
      free.push_back(dim);
  return free;
}

// One operand of a matrix product: batch, rows and columns of the memory at
// `base`.
struct MatrixOperand {
  Value base;
  Extent batch, outer, inner;
};

// `outer` and `inner` are the dimension lists in the order of the product: (m,
// k) or (k, n).
std::optional<MatrixOperand> matrixOperand(Value value, const StridedView& view,
                                           ArrayRef<int64_t> batch,
                                           ArrayRef<int64_t> outer,
                                           ArrayRef<int64_t> inner,
                                           bool may_share_batch) {
  auto b = collapse(value, view, batch), o = collapse(value, view, outer),
       i = collapse(value, view, inner);
  if (!b || !o || !i) return std::nullopt;
  // The library needs one of the two matrix dimensions contiguous, and no
  // repeated elements inside a matrix.
  if (o->size > 1 && i->size > 1 && o->stride != 1 && i->stride != 1)
    return std::nullopt;
  if ((o->size > 1 && o->stride == 0) || (i->size > 1 && i->stride == 0))
    return std::nullopt;
  if (b->size > 1 && b->stride == 0 && !may_share_batch) return std::nullopt;
  // A dimension of size 1 has no stride of its own; it gets that of a dense
  // matrix.
  if (i->size == 1) i->stride = o->size > 1 && o->stride == 1 ? o->size : 1;
  if (o->size == 1) o->stride = i->stride == 1 ? i->size : 1;
  return MatrixOperand{view.base, *b, *o, *i};
}

// Sizes (batch, m, n, k) and strides of a product.
struct ProductShape {
  ProductShape(const MatrixOperand& lhs, const MatrixOperand& rhs)
      : sizes{lhs.batch.size, lhs.outer.size, rhs.inner.size, lhs.inner.size},
        lhs_strides{lhs.batch.stride, lhs.outer.stride, lhs.inner.stride},
        rhs_strides{rhs.batch.stride, rhs.outer.stride, rhs.inner.stride} {}

  SmallVector<int64_t> sizes, lhs_strides, rhs_strides;
};

// scale * (lhs * rhs) with rhs of i8 and lhs of f32 or i8.
struct ByteProduct {
  Value lhs, rhs;
  bool lhs_unsigned = false;
  // One f32 per column, and the multiplication by it; null: the sum is the
  // result.
  Value scale;
  mlir::Operation* scaling = nullptr;
};

// The i8 that `value` widens, or null.
Value narrowedByte(Value value, bool& is_unsigned) {
  mlir::Operation* op = value.getDefiningOp();
  if (!mlir::isa_and_present<mlir::arith::ExtSIOp, mlir::arith::ExtUIOp,
                             mlir::arith::SIToFPOp>(op) ||
      !typeOf(op->getOperand(0)).getElementType().isInteger(8))
    return {};
  is_unsigned = mlir::isa<mlir::arith::ExtUIOp>(op);
  return op->getOperand(0);
}

// Finds a multiplication of `sum`, the product's result as floats, by one
// number per column.
bool matchScaling(nn::DotGeneralOp op, Value sum, ByteProduct& found) {
  if (!sum.hasOneUse()) return false;
  auto scaling = mlir::dyn_cast<mlir::arith::MulFOp>(*sum.user_begin());
  if (!scaling) return false;
  found.scale = nn::channelVector(
      op, scaling.getLhs() == sum ? scaling.getRhs() : scaling.getLhs());
  if (!found.scale || !typeOf(found.scale).getElementType().isF32())
    return false;
  found.scaling = scaling;
  return true;
}

std::optional<ByteProduct> matchByteProduct(nn::DotGeneralOp op) {
  const RankedTensorType type = op.getType();
  if (type.getNumElements() == 0 || typeOf(op.getLhs()).getNumElements() == 0)
    return std::nullopt;
  ByteProduct found;
  bool is_rhs_unsigned = false;
  found.rhs = narrowedByte(op.getRhs(), is_rhs_unsigned);
  if (!found.rhs || is_rhs_unsigned) return std::nullopt;
  if (type.getElementType().isF32()) {
    found.lhs = op.getLhs();
    // A partial sum is scaled after a collective.
    if (!matchScaling(op, op.getResult(), found)) found.scale = {};
    return found;
  }
  found.lhs = narrowedByte(op.getLhs(), found.lhs_unsigned);
  if (!found.lhs || !type.getElementType().isInteger(32)) return std::nullopt;
  if (!op->hasOneUse()) return found;
  auto conversion = mlir::dyn_cast<mlir::arith::SIToFPOp>(*op->user_begin());
  if (!conversion || !matchScaling(op, conversion.getResult(), found))
    found.scale = {};
  return found;
}

class SelectLibraryCalls
    : public impl::SelectLibraryCallsPassBase<SelectLibraryCalls> {
 public:
  using SelectLibraryCallsPassBase::SelectLibraryCallsPassBase;

  void runOnOperation() override {
    SmallVector<nn::DotGeneralOp> dots;
    SmallVector<nn::ConvOp> convolutions;
    SmallVector<nn::ConvInputGradOp> input_grads;
    SmallVector<nn::ConvWeightGradOp> weight_grads;
    getOperation().walk([&](nn::DotGeneralOp op) { dots.push_back(op); });
    getOperation().walk([&](nn::ConvOp op) { convolutions.push_back(op); });
    getOperation().walk(
        [&](nn::ConvInputGradOp op) { input_grads.push_back(op); });
    getOperation().walk(
        [&](nn::ConvWeightGradOp op) { weight_grads.push_back(op); });
    for (nn::DotGeneralOp op : dots) selectGemm(op);
    for (nn::ConvOp op : convolutions) selectConv(op);
    for (nn::ConvInputGradOp op : input_grads)
      selectConvGrad(op, op.getResultGrad(), op.getWeight(),
                     exec::ConvDirection::kInputGrad);
    for (nn::ConvWeightGradOp op : weight_grads)
      selectConvGrad(op, op.getInput(), op.getResultGrad(),
                     exec::ConvDirection::kWeightGrad);
    if (gpu) return;
    SmallVector<nn::GroupedDotOp> grouped;
    SmallVector<nn::GroupedDotWeightGradOp> grouped_grads;
    getOperation().walk([&](nn::GroupedDotOp op) { grouped.push_back(op); });
    getOperation().walk(
        [&](nn::GroupedDotWeightGradOp op) { grouped_grads.push_back(op); });
    for (nn::GroupedDotOp op : grouped)
      selectGrouped(op, op.getW(), op.getTransposed(), /*weight_grad=*/false);
    for (nn::GroupedDotWeightGradOp op : grouped_grads)
      selectGrouped(op, op.getResultGrad(), /*transposed=*/false,
                    /*weight_grad=*/true);
  }

 private:
  MatrixOperand operandOf(mlir::OpBuilder& builder, Value value,
                          ArrayRef<int64_t> batch, ArrayRef<int64_t> outer,
                          ArrayRef<int64_t> inner, bool may_share_batch) {
    if (auto operand = matrixOperand(value, viewOf(value), batch, outer, inner,
                                     may_share_batch))
      return *operand;
    if (auto operand = matrixOperand(value, denseView(value), batch, outer,
                                     inner, may_share_batch))
      return *operand;
    // Brings the operand into the order (batch, outer, inner): a copy, which a
    // later kernel makes.
    ++copies;
    SmallVector<int64_t> perm(batch);
    llvm::append_range(perm, outer);
    llvm::append_range(perm, inner);
    Value ordered =
        nn::TransposeOp::create(builder, value.getLoc(), value, perm);
    auto range = [](size_t from, size_t count) {
      return llvm::to_vector(llvm::seq<int64_t>(from, from + count));
    };
    return *matrixOperand(ordered, denseView(ordered), range(0, batch.size()),
                          range(batch.size(), outer.size()),
                          range(batch.size() + outer.size(), inner.size()),
                          may_share_batch);
  }

  void selectGemm(nn::DotGeneralOp op) {
    if (!gpu && (selectByteGemm(op) || selectGroupGemm(op))) return;
    if (!isLibraryProduct(op)) return;
    mlir::OpBuilder builder(op);
    MatrixOperand lhs =
        operandOf(builder, op.getLhs(), op.getLhsBatch(),
                  freeDims(op.getLhs(), op.getLhsBatch(), op.getLhsContract()),
                  op.getLhsContract(), /*may_share_batch=*/false);
    MatrixOperand rhs =
        operandOf(builder, op.getRhs(), op.getRhsBatch(), op.getRhsContract(),
                  freeDims(op.getRhs(), op.getRhsBatch(), op.getRhsContract()),
                  /*may_share_batch=*/true);
    const ProductShape shape(lhs, rhs);
    auto gemm = exec::GemmOp::create(
        builder, op.getLoc(), op.getType(), lhs.base, rhs.base, Value(),
        Value(), Value(), Value(), /*lhs_unsigned=*/false, shape.sizes,
        shape.lhs_strides, shape.rhs_strides, mlir::IntegerAttr(),
        exec::Activation::kNone);
    const bool is_wide = op.getType().getElementType().isF32();
    // A residual of f32 in oneDNN is not measured: on CPUs a kernel adds it.
    replace(op, gemm, nn::epilogueOf(op, /*residuals=*/gpu || !is_wide));
    ++gemms;
  }

  // Selects a product of which one or both factors are integers of 8 bits.
  bool selectByteGemm(nn::DotGeneralOp op) {
    const std::optional<ByteProduct> product = matchByteProduct(op);
    if (!product) return false;
    mlir::Operation* const last = product->scaling ? product->scaling : op;
    mlir::OpBuilder builder(last);
    const MatrixOperand lhs =
        operandOf(builder, product->lhs, op.getLhsBatch(),
                  freeDims(op.getLhs(), op.getLhsBatch(), op.getLhsContract()),
                  op.getLhsContract(), /*may_share_batch=*/false);
    const MatrixOperand rhs =
        operandOf(builder, product->rhs, op.getRhsBatch(), op.getRhsContract(),
                  freeDims(op.getRhs(), op.getRhsBatch(), op.getRhsContract()),
                  /*may_share_batch=*/true);
    const ProductShape shape(lhs, rhs);
    const Value scaled = last->getResult(0);
    Value scale = product->scale;
    if (!scale && op.getType().getElementType().isF32())
      scale = ones(builder, op, rhs.inner.size);
    auto gemm = exec::GemmOp::create(
        builder, op.getLoc(), scaled.getType(), lhs.base, rhs.base, scale,
        Value(), Value(), Value(), product->lhs_unsigned, shape.sizes,
        shape.lhs_strides, shape.rhs_strides, mlir::IntegerAttr(),
        exec::Activation::kNone);
    llvm::SetVector<Value> factors;
    factors.insert(op.getLhs());
    factors.insert(op.getRhs());
    const bool is_scaled = product->scaling != nullptr;
    replace(last, gemm,
            scale ? nn::epilogueOf(op, /*residuals=*/false, scaled)
                  : nn::ProductEpilogue());
    // The product and its conversion are dead then.
    if (is_scaled) {
      if (!op->use_empty()) (*op->user_begin())->erase();
      op.erase();
    }
    for (Value factor : factors)
      if (mlir::Operation* widening = factor.getDefiningOp();
          widening && widening->use_empty())
        widening->erase();
    ++gemms;
    return true;
  }

  // Selects a product with a packed weight of 4 bits as one factor.
  bool selectGroupGemm(nn::DotGeneralOp op) {
    if (!isLibraryProduct(op) || !op.getType().getElementType().isF32())
      return false;
    const StridedView view = viewOf(op.getRhs());
    auto weight = view.base.getDefiningOp<nn::DequantizeOp>();
    if (!weight || !op.getLhsBatch().empty()) return false;
    const std::optional<MatrixOperand> rhs =
        matrixOperand(op.getRhs(), view, {}, op.getRhsContract(),
                      freeDims(op.getRhs(), {}, op.getRhsContract()),
                      /*may_share_batch=*/true);
    if (!rhs) return false;
    mlir::OpBuilder builder(op);
    const MatrixOperand lhs =
        operandOf(builder, op.getLhs(), {},
                  freeDims(op.getLhs(), {}, op.getLhsContract()),
                  op.getLhsContract(), /*may_share_batch=*/false);
    const ProductShape shape(lhs, *rhs);
    auto gemm = exec::GemmOp::create(
        builder, op.getLoc(), op.getType(), lhs.base, weight.getPacked(),
        weight.getScale(), weight.getZero(), Value(), Value(),
        /*lhs_unsigned=*/false, shape.sizes, shape.lhs_strides,
        shape.rhs_strides,
        builder.getI64IntegerAttr(weight.getType().getShape().back()),
        exec::Activation::kNone);
    replace(op, gemm, nn::epilogueOf(op, /*residuals=*/false));
    ++gemms;
    return true;
  }

  static Value ones(mlir::OpBuilder& builder, nn::DotGeneralOp op,
                    int64_t count) {
    const auto type = RankedTensorType::get({count}, builder.getF32Type());
    return mlir::arith::ConstantOp::create(
        builder, op.getLoc(),
        mlir::DenseElementsAttr::get(type, builder.getF32FloatAttr(1)));
  }

  void selectConv(nn::ConvOp op) {
    if (!isLibraryProduct(op) || (!gpu && selectByteConv(op))) return;
    mlir::OpBuilder builder(op);
    auto conv = exec::ConvOp::create(
        builder, op.getLoc(), op.getType(), op.getInput(), op.getWeight(),
        Value(), Value(), op.getStrides(), op.getDilations(), op.getLow(),
        op.getHigh(), op.getGroups(), op.getChannelsLast(),
        exec::ConvDirection::kForward, exec::Activation::kNone);
    const bool is_wide = op.getType().getElementType().isF32();
    // On GPUs a separate kernel of the runtime adds a bias. The compiler's
    // kernels add it in passing, but round the convolution first.
    replace(op, conv,
            gpu && !is_wide ? nn::ProductEpilogue()
                            : nn::epilogueOf(op, /*residuals=*/false));
    ++convs;
  }

  // Selects a convolution of integers of 8 bits.
  bool selectByteConv(nn::ConvOp op) {
    const std::optional<nn::ByteConvolution> found =
        nn::matchByteConvolution(op);
    if (!found) return false;
    const exec::ConvOp conv = buildByteConvolution(op, *found);
    mlir::Operation* const last = found->scaling ? found->scaling : op;
    const bool is_scaled = found->scaling != nullptr;
    const Value input = op.getInput(), weight = op.getWeight();
    replace(last, conv,
            is_scaled
                ? nn::epilogueOf(op, /*residuals=*/false, last->getResult(0))
                : nn::ProductEpilogue());
    if (is_scaled) op.erase();
    for (const Value factor : {input, weight}) eraseUnused(factor);
    ++convs;
    return true;
  }

  // Erases the operations that widened integers.
  static void eraseUnused(Value value) {
    mlir::Operation* op = value.getDefiningOp();
    if (!op || !op->use_empty() ||
        !mlir::isa<nn::TransposeOp, mlir::arith::SIToFPOp,
                   mlir::arith::UIToFPOp, mlir::arith::SubIOp,
                   mlir::arith::ExtSIOp, mlir::arith::ExtUIOp>(op))
      return;
    const SmallVector<Value> operands(op->getOperands());
    op->erase();
    for (const Value operand : operands) eraseUnused(operand);
  }

  template <typename Op>
  void selectConvGrad(Op op, Value first, Value second,
                      exec::ConvDirection direction) {
    if (!isLibraryProduct(op)) return;
    mlir::OpBuilder builder(op);
    auto conv = exec::ConvOp::create(
        builder, op.getLoc(), op.getType(), first, second, Value(), Value(),
        op.getStrides(), op.getDilations(), op.getLow(), op.getHigh(),
        op.getGroups(), op.getChannelsLast(), direction,
        exec::Activation::kNone);
    op.replaceAllUsesWith(conv.getResult());
    op.erase();
    ++convs;
  }

  // The rows that `rows` [R, K] repeats for consecutive indices, else `rows`.
  static Value repeatedRows(mlir::OpBuilder& builder, Value rows) {
    auto merged = rows.getDefiningOp<nn::ReshapeOp>();
    auto repeated = merged ? merged.getInput().getDefiningOp<nn::BroadcastOp>()
                           : nn::BroadcastOp();
    if (!repeated) return rows;
    // The broadcast adds the last dimension but one.
    const RankedTensorType input = typeOf(repeated.getInput());
    SmallVector<int64_t> dims =
        llvm::to_vector(llvm::seq<int64_t>(0, input.getRank()));
    SmallVector<int64_t> shape(typeOf(repeated).getShape());
    if (input.getRank() < 2 ||
        input.getRank() + 1 != typeOf(repeated).getRank())
      return rows;
    ++dims.back();
    shape.erase(shape.end() - 2);
    const int64_t width = shape.back();
    if (repeated.getDims() != ArrayRef<int64_t>(dims) ||
        input.getShape() != ArrayRef<int64_t>(shape) ||
        typeOf(rows).getDimSize(1) != width)
      return rows;
    if (input.getRank() == 2) return repeated.getInput();
    return nn::ReshapeOp::create(builder, rows.getLoc(),
                                 input.clone(SmallVector<int64_t>{
                                     input.getNumElements() / width, width}),
                                 repeated.getInput());
  }

  template <typename Op>
  void selectGrouped(Op op, Value rhs, bool transposed, bool weight_grad) {
    if (!isLibraryProduct(op) || !isLibraryIndex(op.getIds())) return;
    mlir::OpBuilder builder(op);
    auto gemm = exec::GroupedGemmOp::create(
        builder, op.getLoc(), op.getType(), repeatedRows(builder, op.getX()),
        rhs, op.getIds(), transposed, weight_grad);
    op.replaceAllUsesWith(gemm.getResult());
    op.erase();
    ++grouped_gemms;
  }

  // Replaces `op` and the addends that `call` can add by `call`.
  template <typename Call>
  void replace(mlir::Operation* op, Call call,
               const nn::ProductEpilogue& epilogue) {
    SmallVector<mlir::Operation*> replaced = {op};
    while (epilogue && replaced.back() != epilogue.last)
      replaced.push_back(*replaced.back()->user_begin());
    call->moveBefore(replaced.back());
    if (epilogue.bias) call.getBiasMutable().assign(epilogue.bias);
    if (epilogue.residual) call.getResidualMutable().assign(epilogue.residual);
    replaced.back()->getResult(0).replaceAllUsesWith(call.getResult());
    for (mlir::Operation* each : llvm::reverse(replaced)) each->erase();
    biases += epilogue.bias != nullptr;
    sums += epilogue.residual != nullptr;
  }
};

}  // namespace
}  // namespace partita::kernels
