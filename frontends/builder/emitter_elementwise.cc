// Elementwise operations, casts, reductions and contractions of the emitter.
#include "frontends/builder/emitter.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace partita::builder {

namespace arith = mlir::arith;
namespace math = mlir::math;

Shape Emitter::broadcastShape(Dims a, Dims b) {
  Shape result(std::max(a.size(), b.size()), 1);
  for (size_t i = 0; i < result.size(); ++i) {
    int64_t size_a = i < a.size() ? a[a.size() - 1 - i] : 1,
            size_b = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (size_a != size_b && size_a != 1 && size_b != 1) {
      error("expected shapes that broadcast to one, found " + toString(a) +
            " and " + toString(b));
      return Shape(a);
    }
    result[result.size() - 1 - i] = size_a == 1 ? size_b : size_a;
  }
  return result;
}

Val Emitter::spread(Val input, Dims shape, bool folds) {
  constexpr int64_t kMaxSpreadElements = 4096;
  mlir::DenseElementsAttr attr = input.constant();
  bool grows = attr && !attr.isSplat() && input.shape() != shape &&
               product(shape) > kMaxSpreadElements;
  if (folds || !grows) return broadcast(input, shape);
  Shape dims;
  for (int64_t i = 0; i < input.rank(); ++i)
    dims.push_back(static_cast<int64_t>(shape.size()) - input.rank() + i);
  auto type = tensor(shape, input.element());
  return {nn::BroadcastOp::create(builder_, loc_, type, input.value, dims),
          input.is_unsigned};
}

bool Emitter::unify(Val& a, Val& b) {
  if (!(a.elementType() == b.elementType())) {
    error("expected operands of one element type, found " +
          toString(a.elementType()) + " and " + toString(b.elementType()));
    return false;
  }
  Shape shape = broadcastShape(a.shape(), b.shape());
  if (failed_) return false;
  bool folds = a.constant() && b.constant();
  a = spread(a, shape, folds);
  b = spread(b, shape, folds);
  return true;
}

template <typename FloatOp, typename SignedOp, typename UnsignedOp>
Val Emitter::arithmetic(Val a, Val b) {
  if (!unify(a, b)) return a;
  if (a.isFloat()) return {create<FloatOp>(a.value, b.value)};
  if (a.is_unsigned) return {create<UnsignedOp>(a.value, b.value), true};
  return {create<SignedOp>(a.value, b.value)};
}

Val Emitter::add(Val a, Val b) {
  return arithmetic<arith::AddFOp, arith::AddIOp, arith::AddIOp>(a, b);
}
Val Emitter::sub(Val a, Val b) {
  return arithmetic<arith::SubFOp, arith::SubIOp, arith::SubIOp>(a, b);
}
Val Emitter::mul(Val a, Val b) {
  return arithmetic<arith::MulFOp, arith::MulIOp, arith::MulIOp>(a, b);
}
Val Emitter::div(Val a, Val b) {
  return arithmetic<arith::DivFOp, arith::DivSIOp, arith::DivUIOp>(a, b);
}
Val Emitter::remainder(Val a, Val b) {
  return arithmetic<arith::RemFOp, arith::RemSIOp, arith::RemUIOp>(a, b);
}
Val Emitter::maximum(Val a, Val b) {
  if (a.isBool()) return bitOr(a, b);
  return arithmetic<arith::MaximumFOp, arith::MaxSIOp, arith::MaxUIOp>(a, b);
}
Val Emitter::minimum(Val a, Val b) {
  if (a.isBool()) return bitAnd(a, b);
  return arithmetic<arith::MinimumFOp, arith::MinSIOp, arith::MinUIOp>(a, b);
}
Val Emitter::bitAnd(Val a, Val b) { return binary<arith::AndIOp>(a, b); }
Val Emitter::bitOr(Val a, Val b) { return binary<arith::OrIOp>(a, b); }
Val Emitter::bitXor(Val a, Val b) { return binary<arith::XOrIOp>(a, b); }

Val Emitter::compare(Compare kind, Val a, Val b) {
  using F = arith::CmpFPredicate;
  using I = arith::CmpIPredicate;
  static constexpr F kFloat[] = {F::OEQ, F::UNE, F::OLT,
                                 F::OLE, F::OGT, F::OGE};
  static constexpr I kSigned[] = {I::eq, I::ne, I::slt, I::sle, I::sgt, I::sge};
  static constexpr I kUnsigned[] = {I::eq,  I::ne,  I::ult,
                                    I::ule, I::ugt, I::uge};
  if (!unify(a, b)) return splat(0, builder_.getI1Type(), a.shape());
  auto index = static_cast<size_t>(kind);
  if (a.isFloat())
    return {create<arith::CmpFOp>(kFloat[index], a.value, b.value)};
  bool is_unsigned = a.is_unsigned || a.isBool();
  return {create<arith::CmpIOp>(is_unsigned ? kUnsigned[index] : kSigned[index],
                                a.value, b.value)};
}

Val Emitter::select(Val condition, Val a, Val b) {
  if (!unify(a, b)) return a;
  if (!condition.isBool()) {
    error("expected a condition of type bool, found " +
          toString(condition.elementType()));
    return a;
  }
  Shape shape = broadcastShape(condition.shape(), a.shape());
  if (failed_) return a;
  bool folds = condition.constant() && a.constant() && b.constant();
  condition = spread(condition, shape, folds);
  a = spread(a, shape, folds);
  b = spread(b, shape, folds);
  return {create<arith::SelectOp>(condition.value, a.value, b.value),
          a.is_unsigned};
}

Val Emitter::neg(Val a) {
  if (a.isFloat()) return unary<arith::NegFOp>(a);
  return sub(splatLike(0, a), a);
}

Val Emitter::abs(Val a) {
  if (a.isFloat()) return unary<math::AbsFOp>(a);
  return a.is_unsigned ? a : unary<math::AbsIOp>(a);
}

Val Emitter::logicalNot(Val a) { return bitXor(a, splatLike(1, a)); }

Val Emitter::sigmoid(Val a) {
  return div(splatLike(1, a), add(unary<math::ExpOp>(neg(a)), 1));
}

mlir::Value Emitter::castFloats(mlir::Value value, mlir::FloatType from,
                                mlir::FloatType to) {
  auto shape = mlir::cast<mlir::RankedTensorType>(value.getType()).getShape();
  if (from.getWidth() < to.getWidth())
    return create<arith::ExtFOp>(tensor(shape, to), value);
  if (from.getWidth() > to.getWidth())
    return create<arith::TruncFOp>(tensor(shape, to), value);
  // Casts between formats of the same width (f16 and bf16) go through a type
  // that represents both.
  auto middle = mlir::cast<mlir::FloatType>(f32());
  return castFloats(castFloats(value, from, middle), middle, to);
}

Val Emitter::cast(Val a, ElementType to) {
  if (a.element() == to.type) return {a.value, to.is_unsigned};
  mlir::RankedTensorType type = tensor(a.shape(), to.type);
  auto to_float = mlir::dyn_cast<mlir::FloatType>(to.type);
  if (to.type.isInteger(1)) return compare(Compare::ne, a, splatLike(0, a));
  if (auto from_float = mlir::dyn_cast<mlir::FloatType>(a.element())) {
    if (to_float) return {castFloats(a.value, from_float, to_float)};
    // Types below a byte wrap around on overflow; importers leave the
    // others.
    if (to.type.getIntOrFloatBitWidth() < 8)
      return cast(cast(a, builder_.getI32Type()), to);
    if (to.is_unsigned) return {create<arith::FPToUIOp>(type, a.value), true};
    return {create<arith::FPToSIOp>(type, a.value)};
  }
  bool from_unsigned = a.is_unsigned || a.isBool();
  if (to_float) {
    if (from_unsigned) return {create<arith::UIToFPOp>(type, a.value)};
    return {create<arith::SIToFPOp>(type, a.value)};
  }
  if (to.type.getIntOrFloatBitWidth() < a.element().getIntOrFloatBitWidth()) {
    return {create<arith::TruncIOp>(type, a.value), to.is_unsigned};
  }
  if (from_unsigned)
    return {create<arith::ExtUIOp>(type, a.value), to.is_unsigned};
  return {create<arith::ExtSIOp>(type, a.value), to.is_unsigned};
}

Val Emitter::neutral(nn::ReduceKind kind, ElementType element) {
  if (kind == nn::ReduceKind::sum) return splat(0, element);
  if (kind == nn::ReduceKind::prod) return splat(1, element);
  bool is_max = kind == nn::ReduceKind::max;
  if (mlir::isa<mlir::FloatType>(element.type))
    return splat(is_max ? -INFINITY : INFINITY, element);
  unsigned width = element.type.getIntOrFloatBitWidth();
  bool is_unsigned = element.is_unsigned || width == 1;
  llvm::APInt value = is_unsigned
                          ? (is_max ? llvm::APInt::getMinValue(width)
                                    : llvm::APInt::getMaxValue(width))
                          : (is_max ? llvm::APInt::getSignedMinValue(width)
                                    : llvm::APInt::getSignedMaxValue(width));
  return constant(mlir::DenseElementsAttr::get(tensor({}, element.type), value),
                  element.is_unsigned);
}

namespace {

// nn compares integers as signed. Flipping the top bit of unsigned integers
// preserves their order.
Val flipSign(Emitter& emitter, Val input) {
  unsigned width = input.element().getIntOrFloatBitWidth();
  mlir::DenseElementsAttr top = mlir::DenseElementsAttr::get(
      emitter.tensor({}, input.element()), llvm::APInt::getSignMask(width));
  return emitter.bitXor(input, emitter.constant(top, input.is_unsigned));
}

bool needsFlip(nn::ReduceKind kind, Val input) {
  return input.is_unsigned &&
         (kind == nn::ReduceKind::max || kind == nn::ReduceKind::min);
}

}  // namespace

Val Emitter::reduce(nn::ReduceKind kind, Val input, Dims dims, bool keep_dims) {
  Shape sorted(dims), kept, with_ones(input.shape());
  llvm::sort(sorted);
  for (int64_t i = 0; i < input.rank(); ++i) {
    if (llvm::is_contained(sorted, i)) {
      with_ones[i] = 1;
    } else {
      kept.push_back(input.dim(i));
    }
  }
  Val result = input;
  if (!sorted.empty()) {
    bool flips = needsFlip(kind, input);
    Val operand = flips ? flipSign(*this, input) : input;
    result = {create<nn::ReduceOp>(kind, operand.value, sorted),
              input.is_unsigned};
    if (flips) result = flipSign(*this, result);
  }
  return keep_dims ? reshape(result, with_ones) : result;
}

Val Emitter::mean(Val input, Dims dims, bool keep_dims) {
  int64_t count = 1;
  for (int64_t dim : dims) count *= input.dim(dim);
  return div(reduce(nn::ReduceKind::sum, input, dims, keep_dims),
             static_cast<double>(count));
}

Val Emitter::reduceWindow(nn::ReduceKind kind, Val input, Dims window,
                          Dims strides, Dims dilations, Dims low, Dims high) {
  Shape shape;
  for (int64_t i = 0; i < input.rank(); ++i) {
    shape.push_back(nn::windowedSize(input.dim(i), window[i], strides[i],
                                     dilations[i], low[i], high[i]));
  }
  bool flips = needsFlip(kind, input);
  Val operand = flips ? flipSign(*this, input) : input;
  Val result = {create<nn::ReduceWindowOp>(tensor(shape, input.element()), kind,
                                           operand.value, window, strides,
                                           dilations, low, high),
                input.is_unsigned};
  return flips ? flipSign(*this, result) : result;
}

Val Emitter::dot(Val lhs, Val rhs, Dims lhs_batch, Dims rhs_batch,
                 Dims lhs_contract, Dims rhs_contract) {
  if (!(lhs.elementType() == rhs.elementType())) {
    error("expected factors of one element type");
    return lhs;
  }
  for (auto [dims, other] : {std::pair(lhs_batch, rhs_batch),
                             std::pair(lhs_contract, rhs_contract)}) {
    for (auto [i, j] : llvm::zip(dims, other)) {
      if (lhs.dim(i) != rhs.dim(j)) {
        error("expected factors that agree in the sizes summed over, found " +
              toString(lhs.shape()) + " and " + toString(rhs.shape()));
        return lhs;
      }
    }
  }
  return {create<nn::DotGeneralOp>(lhs.value, rhs.value, lhs_batch, rhs_batch,
                                   lhs_contract, rhs_contract),
          lhs.is_unsigned};
}

Val Emitter::matmul(Val lhs, Val rhs) {
  if (lhs.rank() == 0 || rhs.rank() == 0) {
    error("expected factors of rank 1 or more");
    return lhs;
  }
  // A vector operand has no batch dimensions and adds none to the result.
  if (lhs.rank() == 1)
    return dot(lhs, rhs, {}, {}, {0}, {std::max<int64_t>(rhs.rank() - 2, 0)});
  if (rhs.rank() == 1) return dot(lhs, rhs, {}, {}, {lhs.rank() - 1}, {0});
  Dims lhs_batch = lhs.shape().drop_back(2),
       rhs_batch = rhs.shape().drop_back(2);
  Shape batch = broadcastShape(lhs_batch, rhs_batch);
  if (failed_) return lhs;
  if (llvm::all_of(rhs_batch, [](int64_t size) { return size == 1; }) &&
      rhs.rank() <= lhs.rank()) {
    Val matrix = reshape(rhs, rhs.shape().take_back(2));
    return dot(lhs, matrix, {}, {}, {lhs.rank() - 1}, {0});
  }
  Shape lhs_shape(batch), rhs_shape(batch);
  llvm::append_range(lhs_shape, lhs.shape().take_back(2));
  llvm::append_range(rhs_shape, rhs.shape().take_back(2));
  int64_t rank = batch.size();
  Shape dims = countUp(rank);
  return dot(broadcast(lhs, lhs_shape), broadcast(rhs, rhs_shape), dims, dims,
             {rank + 1}, {rank});
}

Val Emitter::softmax(Val input, int64_t axis, bool log) {
  return {create<nn::SoftmaxOp>(input.type(), input.value, axis, log)};
}

}  // namespace partita::builder
