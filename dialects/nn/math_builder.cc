// Implementation of MathBuilder; each function builds one operation.
#include "dialects/nn/math_builder.h"

#include "llvm/ADT/STLExtras.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace partita::nn {

using mlir::ArrayRef;
using mlir::DenseElementsAttr;
using mlir::RankedTensorType;
using mlir::SmallVector;
using mlir::Value;
namespace arith = mlir::arith;
namespace math = mlir::math;

Value MathBuilder::constant(Type type, double value) {
  const auto element = builder_.getFloatAttr(type.getElementType(), value);
  return arith::ConstantOp::create(builder_, loc_,
                                   DenseElementsAttr::get(type, element));
}

Value MathBuilder::constantInt(Type type, int64_t value) {
  const unsigned width = type.getElementType().getIntOrFloatBitWidth();
  const llvm::APInt bits(width, value, /*isSigned=*/true,
                         /*implicitTrunc=*/true);
  return arith::ConstantOp::create(builder_, loc_,
                                   DenseElementsAttr::get(type, bits));
}

Value MathBuilder::add(Value x, Value y) {
  return arith::AddFOp::create(builder_, loc_, x, y);
}
Value MathBuilder::subtract(Value x, Value y) {
  return arith::SubFOp::create(builder_, loc_, x, y);
}
Value MathBuilder::multiply(Value x, Value y) {
  return arith::MulFOp::create(builder_, loc_, x, y);
}
Value MathBuilder::divide(Value x, Value y) {
  return arith::DivFOp::create(builder_, loc_, x, y);
}
Value MathBuilder::exp(Value x) {
  return math::ExpOp::create(builder_, loc_, x);
}
Value MathBuilder::log(Value x) {
  return math::LogOp::create(builder_, loc_, x);
}
Value MathBuilder::sqrt(Value x) {
  return math::SqrtOp::create(builder_, loc_, x);
}
Value MathBuilder::rsqrt(Value x) {
  return math::RsqrtOp::create(builder_, loc_, x);
}
Value MathBuilder::cos(Value x) {
  return math::CosOp::create(builder_, loc_, x);
}
Value MathBuilder::tanh(Value x) {
  return math::TanhOp::create(builder_, loc_, x);
}

Value MathBuilder::addInt(Value x, Value y) {
  return arith::AddIOp::create(builder_, loc_, x, y);
}
Value MathBuilder::multiplyInt(Value x, Value y) {
  return arith::MulIOp::create(builder_, loc_, x, y);
}
Value MathBuilder::andInt(Value x, Value y) {
  return arith::AndIOp::create(builder_, loc_, x, y);
}
Value MathBuilder::xorInt(Value x, Value y) {
  return arith::XOrIOp::create(builder_, loc_, x, y);
}
Value MathBuilder::shiftRight(Value x, Value y) {
  return arith::ShRUIOp::create(builder_, loc_, x, y);
}

Value MathBuilder::compare(arith::CmpFPredicate predicate, Value x, Value y) {
  return arith::CmpFOp::create(builder_, loc_, predicate, x, y);
}
Value MathBuilder::compare(arith::CmpIPredicate predicate, Value x, Value y) {
  return arith::CmpIOp::create(builder_, loc_, predicate, x, y);
}
Value MathBuilder::select(Value condition, Value x, Value y) {
  return arith::SelectOp::create(builder_, loc_, condition, x, y);
}

Value MathBuilder::widen(Value x) {
  if (typeOf(x).getElementTypeBitWidth() >= 32) return x;
  return arith::ExtFOp::create(builder_, loc_,
                               typeOf(x).clone(builder_.getF32Type()), x);
}

Value MathBuilder::narrow(Value x, Type type) {
  if (x.getType() == type) return x;
  return arith::TruncFOp::create(builder_, loc_, type, x);
}

Value MathBuilder::asFloat(Value x, mlir::Type element) {
  const Type type = typeOf(x).clone(element);
  if (typeOf(x).getElementTypeBitWidth() < type.getElementTypeBitWidth())
    return arith::ExtFOp::create(builder_, loc_, type, x);
  return narrow(x, type);
}

Value MathBuilder::toFloat(Value x, mlir::Type element) {
  return arith::SIToFPOp::create(builder_, loc_, typeOf(x).clone(element), x);
}

Value MathBuilder::reshape(Value x, ArrayRef<int64_t> shape) {
  if (typeOf(x).getShape() == shape) return x;
  return ReshapeOp::create(builder_, loc_, typeOf(x).clone(shape), x);
}

Value MathBuilder::broadcast(Value x, Type type, ArrayRef<int64_t> dims) {
  if (x.getType() == type) return x;
  return BroadcastOp::create(builder_, loc_, type, x, dims);
}

Value MathBuilder::reduce(ReduceKind kind, Value x, ArrayRef<int64_t> dims) {
  return ReduceOp::create(builder_, loc_, kind, x, dims);
}

Value MathBuilder::spread(Value reduced, Value like, ArrayRef<int64_t> dims) {
  SmallVector<int64_t> kept;
  for (int64_t dim = 0; dim < typeOf(like).getRank(); ++dim) {
    if (!llvm::is_contained(dims, dim)) kept.push_back(dim);
  }
  return broadcast(reduced, typeOf(like), kept);
}

Value MathBuilder::dotGeneral(Value x, Value y, ArrayRef<int64_t> x_batch,
                              ArrayRef<int64_t> y_batch,
                              ArrayRef<int64_t> x_contract,
                              ArrayRef<int64_t> y_contract) {
  return DotGeneralOp::create(builder_, loc_, x, y, x_batch, y_batch,
                              x_contract, y_contract);
}

Value MathBuilder::iota(Type type, int64_t dim) {
  return IotaOp::create(builder_, loc_, type, dim);
}

Value MathBuilder::gatherPerRow(Value rows, Value columns) {
  const int64_t axis = typeOf(rows).getRank() - 1;
  const RankedTensorType type =
      inferGatherType(typeOf(rows), typeOf(columns), {axis}, axis);
  return GatherOp::create(builder_, loc_, type, rows, columns,
                          ArrayRef<int64_t>{axis}, axis);
}

Value MathBuilder::divideInt(Value x, int64_t y) {
  return arith::DivSIOp::create(builder_, loc_, x, constantInt(typeOf(x), y));
}

Value MathBuilder::clampInt(Value x, int64_t low, int64_t high) {
  x = arith::MaxSIOp::create(builder_, loc_, x, constantInt(typeOf(x), low));
  return arith::MinSIOp::create(builder_, loc_, x,
                                constantInt(typeOf(x), high));
}

Value MathBuilder::takeRows(Value x, Value numbers) {
  const Value indices = reshape(numbers, {typeOf(numbers).getDimSize(0), 1});
  const RankedTensorType type =
      inferGatherType(typeOf(x), typeOf(indices), {0}, 0);
  return GatherOp::create(builder_, loc_, type, x, indices,
                          ArrayRef<int64_t>{0});
}

Value MathBuilder::firstOf(Value x, int64_t dim, int64_t size) {
  const RankedTensorType type = typeOf(x);
  llvm::SmallVector<int64_t> shape(type.getShape()), starts(type.getRank(), 0),
      strides(type.getRank(), 1);
  if (shape[dim] == size) return x;
  shape[dim] = size;
  return SliceOp::create(builder_, loc_, type.clone(shape), x, starts, strides);
}

Value MathBuilder::elements(mlir::DenseElementsAttr elements) {
  return arith::ConstantOp::create(builder_, loc_, elements);
}

}  // namespace partita::nn
