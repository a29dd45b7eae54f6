// Views, splats and reductions seen through data movement, and builders that
// merge data movement.
#include "compiler/simplify/view.h"

#include "dialects/nn/dialect.h"
#include "dialects/nn/tensor.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

namespace partita::simplify {

using mlir::ArrayRef;
using mlir::RankedTensorType;
using mlir::SmallVector;
using mlir::Value;

RankedTensorType tensorType(Value value) {
  return mlir::cast<RankedTensorType>(value.getType());
}

SmallVector<int64_t> View::largeDims() const {
  SmallVector<int64_t> large;
  for (auto [size, dim] : llvm::zip_equal(tensorType(value).getShape(), dims)) {
    if (size != 1) large.push_back(dim);
  }
  return large;
}

View viewOf(Value value) {
  return {value,
          llvm::to_vector(llvm::seq<int64_t>(tensorType(value).getRank()))};
}

namespace {

// Returns the view before a reshape that only adds or drops dimensions of size
// 1.
std::optional<View> beforeReshape(const View& view, nn::ReshapeOp reshape) {
  const auto is_large = [](int64_t size) { return size != 1; };
  const ArrayRef<int64_t> from = reshape.getInput().getType().getShape(),
                          to = reshape.getType().getShape();
  if (!llvm::equal(llvm::make_filter_range(from, is_large),
                   llvm::make_filter_range(to, is_large)))
    return std::nullopt;
  View before{reshape.getInput(), {}};
  const SmallVector<int64_t> large = view.largeDims();
  auto next = large.begin();
  for (int64_t size : from)
    before.dims.push_back(is_large(size) ? *next++ : -1);
  return before;
}

View beforeBroadcast(const View& view, nn::BroadcastOp broadcast) {
  View before{broadcast.getInput(), {}};
  for (int64_t dim : broadcast.getDims()) before.dims.push_back(view.dims[dim]);
  return before;
}

std::optional<Reduced> matchReduce(const View& view, ArrayRef<int64_t> shape,
                                   nn::ReduceKind kind) {
  const View peeled = peel(view);
  auto reduce = peeled.value.getDefiningOp<nn::ReduceOp>();
  if (!reduce || reduce.getKind() != kind ||
      reduce.getInput().getType().getShape() != shape)
    return std::nullopt;
  SmallVector<int64_t> kept;
  for (int64_t dim : llvm::seq<int64_t>(shape.size())) {
    if (!llvm::is_contained(reduce.getDims(), dim) && shape[dim] != 1)
      kept.push_back(dim);
  }
  if (peeled.largeDims() != kept) return std::nullopt;
  return Reduced{reduce.getInput(), llvm::to_vector(reduce.getDims())};
}

}  // namespace

View peel(View view) {
  while (true) {
    if (auto broadcast = view.value.getDefiningOp<nn::BroadcastOp>()) {
      view = beforeBroadcast(view, broadcast);
      continue;
    }
    auto reshape = view.value.getDefiningOp<nn::ReshapeOp>();
    std::optional<View> before =
        reshape ? beforeReshape(view, reshape) : std::nullopt;
    if (!before) return view;
    view = *before;
  }
}

View operandOf(const View& view, unsigned operand) {
  return {view.value.getDefiningOp()->getOperand(operand), view.dims};
}

mlir::DenseElementsAttr splatConstant(Value value) {
  mlir::DenseElementsAttr constant;
  const bool is_constant = mlir::matchPattern(peel(viewOf(value)).value,
                                              mlir::m_Constant(&constant));
  return is_constant && constant.isSplat() ? constant
                                           : mlir::DenseElementsAttr();
}

std::optional<double> splatOf(Value value) {
  if (!mlir::isa<mlir::RankedTensorType>(value.getType())) return std::nullopt;
  const mlir::DenseElementsAttr constant = splatConstant(value);
  if (!constant || !mlir::isa<mlir::FloatType>(constant.getElementType())) {
    return std::nullopt;
  }
  mlir::APFloat number = constant.getSplatValue<mlir::APFloat>();
  bool lost;
  number.convert(mlir::APFloat::IEEEdouble(),
                 mlir::APFloat::rmNearestTiesToEven, &lost);
  return number.convertToDouble();
}

std::optional<Reduced> matchSum(const View& view, ArrayRef<int64_t> shape) {
  return matchReduce(view, shape, nn::ReduceKind::sum);
}

std::optional<Reduced> matchMax(const View& view, ArrayRef<int64_t> shape) {
  return matchReduce(view, shape, nn::ReduceKind::max);
}

std::optional<Reduced> matchMean(const View& view, ArrayRef<int64_t> shape) {
  const View quotient = peel(view);
  mlir::Operation* op = quotient.value.getDefiningOp();
  if (!op || !mlir::isa<mlir::arith::DivFOp, mlir::arith::MulFOp>(op))
    return std::nullopt;
  const bool divides = mlir::isa<mlir::arith::DivFOp>(op);
  for (unsigned sum_operand : {0u, 1u}) {
    if (divides && sum_operand == 1) break;
    const std::optional<double> factor =
        splatOf(op->getOperand(1 - sum_operand));
    if (!factor) continue;
    const std::optional<Reduced> sum =
        matchSum(operandOf(quotient, sum_operand), shape);
    if (!sum) continue;
    double count = 1;
    for (int64_t dim : sum->dims) count *= shape[dim];
    // Compare with the rounded constant: dividing by n - 1 is another
    // statistic.
    const auto element =
        mlir::cast<mlir::FloatType>(tensorType(view.value).getElementType());
    if (*factor == nn::roundToType(divides ? count : 1 / count, element))
      return sum;
  }
  return std::nullopt;
}

Value buildReshape(mlir::OpBuilder& builder, mlir::Location loc, Value value,
                   ArrayRef<int64_t> shape) {
  if (auto inner = value.getDefiningOp<nn::ReshapeOp>())
    value = inner.getInput();
  if (tensorType(value).getShape() == shape) return value;
  return nn::ReshapeOp::create(builder, loc, tensorType(value).clone(shape),
                               value);
}

Value buildTranspose(mlir::OpBuilder& builder, mlir::Location loc, Value value,
                     ArrayRef<int64_t> perm) {
  SmallVector<int64_t> composed(perm);
  if (auto inner = value.getDefiningOp<nn::TransposeOp>()) {
    for (int64_t& dim : composed) dim = inner.getPerm()[dim];
    value = inner.getInput();
  }
  if (llvm::equal(composed, llvm::seq<int64_t>(composed.size()))) return value;
  return nn::TransposeOp::create(builder, loc, value, composed);
}

Value buildBroadcast(mlir::OpBuilder& builder, mlir::Location loc,
                     const View& view, ArrayRef<int64_t> shape) {
  // Nothing repeats, so a reshape is enough.
  if (tensorType(view.value).getNumElements() ==
      mlir::ShapedType::getNumElements(shape)) {
    return buildReshape(builder, loc, view.value, shape);
  }
  // Dimensions of size 1 may be out of order; without them, the rest is in
  // order.
  SmallVector<int64_t> large;
  for (int64_t size : tensorType(view.value).getShape()) {
    if (size != 1) large.push_back(size);
  }
  const bool in_place = llvm::equal(
      view.dims, llvm::seq<int64_t>(static_cast<int64_t>(shape.size())));
  const Value input =
      in_place ? view.value : buildReshape(builder, loc, view.value, large);
  return nn::BroadcastOp::create(builder, loc, tensorType(input).clone(shape),
                                 input,
                                 in_place ? view.dims : view.largeDims());
}

Value buildSplat(mlir::OpBuilder& builder, mlir::Location loc,
                 RankedTensorType type, double value) {
  const mlir::Attribute element =
      builder.getFloatAttr(type.getElementType(), value);
  return mlir::arith::ConstantOp::create(
      builder, loc, mlir::DenseElementsAttr::get(type, element));
}

}  // namespace partita::simplify
