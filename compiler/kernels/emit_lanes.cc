// The emitter's lanes and indices: conversions between scalars and vectors,
// between stored and computed types, and from symbolic indices to numbers.
#include "compiler/kernels/emit_elements.h"
#include "compiler/kernels/emit_float8.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace partita::kernels {

using namespace mlir;

//===----------------------------------------------------------------------===//
// Lanes
//===----------------------------------------------------------------------===//

Type Emitter::computeType(Type type) {
  auto narrow = dyn_cast<FloatType>(type);
  return narrow && narrow.getWidth() < 32 ? builder_.getF32Type() : type;
}

Type Emitter::withLanes(Type type, int64_t lanes) {
  return lanes == 0 ? type : VectorType::get({lanes}, type);
}

Value Emitter::splat(Lanes value, int64_t lanes) {
  if (value.lanes == lanes) return value.value;
  return vector::BroadcastOp::create(
      builder_, VectorType::get({lanes}, value.value.getType()), value.value);
}

Value Emitter::constant(Type type, double value, int64_t lanes) {
  TypedAttr attr = isa<FloatType>(type)
                       ? TypedAttr(builder_.getFloatAttr(type, value))
                       : TypedAttr(builder_.getIntegerAttr(
                             type, static_cast<int64_t>(value)));
  if (lanes != 0)
    attr =
        DenseElementsAttr::get(VectorType::get({lanes}, type), Attribute(attr));
  return arith::ConstantOp::create(builder_, attr);
}

Value Emitter::indexConstant(int64_t value) {
  return arith::ConstantIndexOp::create(builder_, value);
}

Value Emitter::smaller(Value index, int64_t bound) {
  return arith::MinUIOp::create(builder_, index, indexConstant(bound));
}

Value Emitter::toCompute(Value value, Type element) {
  Type type = value.getType();
  int64_t lanes =
      isa<VectorType>(type) ? cast<VectorType>(type).getNumElements() : 0;
  if (element.isInteger(1) && !getElementTypeOrSelf(type).isInteger(1)) {
    Value zero = constant(getElementTypeOrSelf(type), 0, lanes);
    return arith::CmpIOp::create(builder_, arith::CmpIPredicate::ne, value,
                                 zero);
  }
  if (isFloat8(element) && getElementTypeOrSelf(type).isInteger(8))
    return decodeFloat8(builder_, value, element);
  Type compute = computeType(element);
  if (getElementTypeOrSelf(type) == compute) return value;
  return arith::ExtFOp::create(builder_, withLanes(compute, lanes), value);
}

Value Emitter::fromCompute(Value value, Type element) {
  Type type = value.getType();
  int64_t lanes =
      isa<VectorType>(type) ? cast<VectorType>(type).getNumElements() : 0;
  if (element.isInteger(1))
    return arith::ExtUIOp::create(
        builder_, withLanes(builder_.getI8Type(), lanes), value);
  if (isFloat8(element)) return encodeFloat8(builder_, value, element);
  if (getElementTypeOrSelf(type) == element) return value;
  return arith::TruncFOp::create(builder_, withLanes(element, lanes), value);
}

//===----------------------------------------------------------------------===//
// Indices
//===----------------------------------------------------------------------===//

Value Emitter::maskOf(ArrayRef<Index> index) {
  llvm::SetVector<Value> masks;
  for (const Index& i : index)
    for (const Term& term : i.terms())
      if (term.symbol->mask) masks.insert(term.symbol->mask);
  Value result;
  for (Value mask : masks)
    result =
        result ? Value(arith::AndIOp::create(builder_, result, mask)) : mask;
  return result;
}

const Symbol* Emitter::newSymbol(Symbol symbol) {
  symbol.depth = depth();
  symbol.id = symbols_.size();
  symbols_.push_back(symbol);
  return &symbols_.back();
}

const Symbol* Emitter::opaque(Lanes value, int64_t extent, Value mask) {
  Symbol symbol;
  symbol.extent = extent;
  symbol.lanes = value.lanes;
  symbol.irregular = value.lanes != 0;
  symbol.mask = mask;
  Type from = getElementTypeOrSelf(value.value.getType());
  if (value.lanes == 0) {
    symbol.value = from.isIndex()
                       ? value.value
                       : Value(arith::IndexCastOp::create(
                             builder_, builder_.getIndexType(), value.value));
  } else {
    Type type = withLanes(lane_index_, value.lanes);
    unsigned have = from.getIntOrFloatBitWidth(),
             want = lane_index_.getIntOrFloatBitWidth();
    symbol.value =
        have == want ? value.value
        : have < want
            ? Value(arith::ExtSIOp::create(builder_, type, value.value))
            : Value(arith::TruncIOp::create(builder_, type, value.value));
  }
  return newSymbol(symbol);
}

const Symbol* Emitter::clampedSymbol(Lanes value, int64_t extent, Value mask) {
  const Symbol*& symbol =
      scopes_.back().clamped[{value.value.getAsOpaquePointer(), extent}];
  if (symbol) return symbol;
  Type type = getElementTypeOrSelf(value.value.getType());
  auto clamp = [&](int64_t bound, arith::CmpIPredicate beyond) {
    Value limit = constant(type, bound, value.lanes);
    Value is_beyond =
        arith::CmpIOp::create(builder_, beyond, value.value, limit);
    value.value =
        arith::SelectOp::create(builder_, is_beyond, limit, value.value);
  };
  // A narrow type may be unable to hold the bound.
  unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  if (width >= 64 || extent - 1 < (int64_t{1} << (width - 1)))
    clamp(extent - 1, arith::CmpIPredicate::sgt);
  clamp(0, arith::CmpIPredicate::slt);
  symbol = opaque(value, extent, mask);
  return symbol;
}

std::pair<Index, Index> Emitter::split(const Index& index, int64_t size) {
  if (auto parts = index.trySplit(size)) return *parts;
  int64_t largest = index.offset();
  for (const Term& term : index.terms())
    largest += std::max<int64_t>(term.scale, 0) * (term.count() - 1);
  const Symbol* lanes = index.laneSymbol();
  Lanes number =
      this->number(index, lanes ? lane_index_ : builder_.getIndexType());
  Value mask = maskOf(index);
  Lanes quotient = {digit(number.value, {1, nullptr, size, 0}), number.lanes};
  Lanes remainder = {digit(number.value, {1, nullptr, 1, size}), number.lanes};
  return {Index(opaque(quotient, largest / size + 1, mask)),
          Index(opaque(remainder, size, mask))};
}

IndexVector Emitter::delinearize(const Index& position,
                                 ArrayRef<int64_t> shape) {
  IndexVector result(shape.size(), Index());
  Index rest = position;
  // The outermost dimension of more than one element takes the rest.
  int64_t outermost = 0;
  while (outermost < static_cast<int64_t>(shape.size()) &&
         shape[outermost] == 1)
    ++outermost;
  for (int64_t i = static_cast<int64_t>(shape.size()) - 1; i > outermost; --i) {
    if (shape[i] == 1) continue;
    std::tie(rest, result[i]) = split(rest, shape[i]);
  }
  if (outermost < static_cast<int64_t>(shape.size())) result[outermost] = rest;
  return result;
}

Lanes Emitter::number(const Index& index, Type type) {
  Address at = address(index);
  if (!at.offsets && at.stride == 0) {
    if (type.isIndex()) return {at.base, 0};
    Type integer = isa<FloatType>(type) ? builder_.getI64Type() : type;
    Value value = arith::IndexCastOp::create(builder_, integer, at.base);
    if (isa<FloatType>(type))
      value = arith::SIToFPOp::create(builder_, computeType(type), value);
    return {value, 0};
  }
  int64_t lanes = at.lanes;
  if (!at.offsets) {
    Symbol zero;
    zero.value = indexConstant(0);
    zero.lanes = zero.extent = lanes;
    at.offsets = laneNumbers(&zero);
  }
  Type work = isa<FloatType>(type) ? lane_index_ : type;
  unsigned have = lane_index_.getIntOrFloatBitWidth(),
           want = work.getIntOrFloatBitWidth();
  Value offsets = at.offsets;
  if (have < want)
    offsets = arith::ExtSIOp::create(builder_, withLanes(work, lanes), offsets);
  if (have > want)
    offsets =
        arith::TruncIOp::create(builder_, withLanes(work, lanes), offsets);
  Value base = arith::IndexCastOp::create(builder_, work, at.base);
  Value value =
      arith::AddIOp::create(builder_, splat({base, 0}, lanes), offsets);
  if (isa<FloatType>(type))
    value = arith::SIToFPOp::create(builder_,
                                    withLanes(computeType(type), lanes), value);
  return {value, lanes};
}

Lanes Emitter::inRange(const Index& index, int64_t low, int64_t high) {
  Lanes value = number(
      index, index.laneSymbol() ? lane_index_ : Type(builder_.getIndexType()));
  Type type = value.lanes == 0 ? value.value.getType() : lane_index_;
  Value shifted = arith::SubIOp::create(builder_, value.value,
                                        constant(type, low, value.lanes));
  Value size = constant(type, high - low, value.lanes);
  return {
      arith::CmpIOp::create(builder_, arith::CmpIPredicate::ult, shifted, size),
      value.lanes};
}

}  // namespace partita::kernels
