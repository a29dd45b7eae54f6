// Arithmetic, comparison, logic and mathematical functions, element by element.
#include "frontends/torch/ops/ops.h"
#include "llvm/ADT/StringSwitch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace partita::torch {

namespace arith = mlir::arith;
namespace math = mlir::math;

namespace {

using Unary = Val (Emitter::*)(Val);
using Binary = Val (Emitter::*)(Val, Val);

Val sign(Emitter& e, Val x) {
  // 0 and NaN stay unchanged.
  Val negative =
      e.select(e.compare(Compare::lt, x, 0.0), e.splatLike(-1, x), x);
  return e.select(e.compare(Compare::gt, x, 0.0), e.splatLike(1, x), negative);
}

bool isFloat(ElementType type) { return mlir::isa<mlir::FloatType>(type.type); }

// Integer quotients rounded down, as Python's.
Val floorQuotient(Emitter& e, Val a, Val b) {
  if (a.isFloat()) return e.unary<math::FloorOp>(e.div(a, b));
  if (a.is_unsigned) return e.div(a, b);
  Val signs_differ = e.compare(Compare::lt, e.bitXor(a, b), 0.0);
  Val inexact = e.compare(Compare::ne, e.remainder(a, b), 0.0);
  Val quotient = e.div(a, b);
  return e.select(e.bitAnd(signs_differ, inexact), e.sub(quotient, 1),
                  quotient);
}

}  // namespace

Val importUnary(NodeContext& n) {
  Val x = n.tensor("self");
  const ElementType type = n.resultType();
  if (n.failed()) return {};
  auto method = llvm::StringSwitch<Unary>(n.op)
                    .Case("aten.abs", &Emitter::abs)
                    .Case("aten.neg", &Emitter::neg)
                    .Case("aten.exp", &Emitter::unary<math::ExpOp>)
                    .Case("aten.expm1", &Emitter::unary<math::ExpM1Op>)
                    .Case("aten.log", &Emitter::unary<math::LogOp>)
                    .Case("aten.log1p", &Emitter::unary<math::Log1pOp>)
                    .Case("aten.log2", &Emitter::unary<math::Log2Op>)
                    .Case("aten.sqrt", &Emitter::unary<math::SqrtOp>)
                    .Case("aten.rsqrt", &Emitter::unary<math::RsqrtOp>)
                    .Case("aten.erf", &Emitter::unary<math::ErfOp>)
                    .Case("aten.sin", &Emitter::unary<math::SinOp>)
                    .Case("aten.cos", &Emitter::unary<math::CosOp>)
                    .Case("aten.tan", &Emitter::unary<math::TanOp>)
                    .Case("aten.atan", &Emitter::unary<math::AtanOp>)
                    .Case("aten.sinh", &Emitter::unary<math::SinhOp>)
                    .Case("aten.cosh", &Emitter::unary<math::CoshOp>)
                    .Case("aten.tanh", &Emitter::unary<math::TanhOp>)
                    .Default(nullptr);
  auto rounding = llvm::StringSwitch<Unary>(n.op)
                      .Case("aten.floor", &Emitter::unary<math::FloorOp>)
                      .Case("aten.ceil", &Emitter::unary<math::CeilOp>)
                      .Case("aten.round", &Emitter::unary<math::RoundEvenOp>)
                      .Case("aten.trunc", &Emitter::unary<math::TruncOp>)
                      .Default(nullptr);
  if (rounding) return x.isFloat() ? (n.e.*rounding)(x) : x;
  x = n.e.cast(x, type);
  if (method) return (n.e.*method)(x);
  if (n.op == "aten.reciprocal") return n.e.div(n.e.splatLike(1, x), x);
  if (n.op == "aten.square") return n.e.mul(x, x);
  return sign(n.e, x);
}

Val importBinary(NodeContext& n) {
  const ElementType type = n.resultType();
  Val a = n.operand("self", type), b = n.operand("other", type);
  if (n.failed()) return {};
  auto method =
      llvm::StringSwitch<Binary>(n.op)
          .Cases({"aten.mul", "aten.multiply"}, &Emitter::mul)
          .Case("aten.maximum", &Emitter::maximum)
          .Case("aten.minimum", &Emitter::minimum)
          .Cases({"aten.bitwise_and", "aten.__and__"}, &Emitter::bitAnd)
          .Cases({"aten.bitwise_or", "aten.__or__"}, &Emitter::bitOr)
          .Cases({"aten.bitwise_xor", "aten.__xor__"}, &Emitter::bitXor)
          .Default(nullptr);
  if (!method) return n.unsupported("this operator");
  // Products of booleans are logical.
  if (n.op.starts_with("aten.mul") && a.isBool()) method = &Emitter::bitAnd;
  return (n.e.*method)(a, b);
}

Val importAdd(NodeContext& n) {
  const ElementType type = n.resultType();
  Val a = n.operand("self", type), b = n.operand("other", type);
  const double alpha = n.number("alpha", 1);
  if (n.failed()) return {};
  if (n.op == "aten.rsub") std::swap(a, b);
  if (alpha != 1) b = n.e.mul(b, alpha);
  if (n.op != "aten.add") return n.e.sub(a, b);
  return a.isBool() ? n.e.bitOr(a, b) : n.e.add(a, b);
}

// addcmul and addcdiv.
Val importAddProduct(NodeContext& n) {
  const ElementType type = n.resultType();
  Val x = n.operand("self", type), a = n.operand("tensor1", type),
      b = n.operand("tensor2", type);
  const double scale = n.number("value", 1);
  if (n.failed()) return {};
  Val product = n.op == "aten.addcmul" ? n.e.mul(a, b) : n.e.div(a, b);
  if (scale != 1) product = n.e.mul(product, scale);
  return n.e.add(x, product);
}

Val importDiv(NodeContext& n) {
  const ElementType type = n.resultType();
  const std::string mode = n.text("rounding_mode", "");
  Val a = n.operand("self", type), b = n.operand("other", type);
  if (n.failed()) return {};
  if (mode == "floor") return floorQuotient(n.e, a, b);
  if (mode == "trunc")
    return a.isFloat() ? n.e.unary<math::TruncOp>(n.e.div(a, b))
                       : n.e.div(a, b);
  if (!mode.empty()) return n.unsupported("rounding_mode=" + mode);
  return n.e.div(a, b);
}

Val importFloorDivide(NodeContext& n) {
  const ElementType type = n.resultType();
  Val a = n.operand("self", type), b = n.operand("other", type);
  return n.failed() ? Val() : floorQuotient(n.e, a, b);
}

// The remainder has the divisor's sign; of fmod, the dividend's.
Val importRemainder(NodeContext& n) {
  const ElementType type = n.resultType();
  Val a = n.operand("self", type), b = n.operand("other", type);
  if (n.failed()) return {};
  Val remainder = n.e.remainder(a, b);
  if (n.op == "aten.fmod" || a.is_unsigned) return remainder;
  Val zero = n.e.splat(0, type);
  Val signs_differ = n.e.bitXor(n.e.compare(Compare::lt, remainder, zero),
                                n.e.compare(Compare::lt, b, zero));
  Val adjust =
      n.e.bitAnd(signs_differ, n.e.compare(Compare::ne, remainder, zero));
  return n.e.select(adjust, n.e.add(remainder, b), remainder);
}

Val importPow(NodeContext& n) {
  const ElementType type = n.resultType();
  if (n.has("exponent") && !n.isTensor("exponent") && isFloat(type)) {
    const double exponent = n.number("exponent");
    Val x = n.operand("self", type);
    if (n.failed()) return {};
    if (exponent == 1) return x;
    if (exponent == 2) return n.e.mul(x, x);
    if (exponent == 3) return n.e.mul(n.e.mul(x, x), x);
    if (exponent == 0.5) return n.e.unary<math::SqrtOp>(x);
    if (exponent == -0.5) return n.e.unary<math::RsqrtOp>(x);
    if (exponent == -1) return n.e.div(n.e.splatLike(1, x), x);
    return n.e.binary<math::PowFOp>(x, n.e.splat(exponent, type));
  }
  Val a = n.operand("self", type), b = n.operand("exponent", type);
  if (n.failed()) return {};
  if (a.isFloat()) return n.e.binary<math::PowFOp>(a, b);
  return n.e.binary<math::IPowIOp>(a, b);
}

Val importCompare(NodeContext& n) {
  auto [a, b] = n.promoted("self", "other");
  if (n.failed()) return {};
  auto kind = llvm::StringSwitch<Compare>(n.op)
                  .Case("aten.eq", Compare::eq)
                  .Case("aten.ne", Compare::ne)
                  .Case("aten.lt", Compare::lt)
                  .Case("aten.le", Compare::le)
                  .Case("aten.gt", Compare::gt)
                  .Default(Compare::ge);
  return n.e.compare(kind, a, b);
}

Val importLogical(NodeContext& n) {
  const ElementType truth = {n.e.builder().getI1Type()};
  Val a = n.operand("self", truth), b = n.operand("other", truth);
  if (n.failed()) return {};
  if (n.op == "aten.logical_and") return n.e.bitAnd(a, b);
  if (n.op == "aten.logical_or") return n.e.bitOr(a, b);
  return n.e.bitXor(a, b);
}

Val importNot(NodeContext& n) {
  Val x = n.tensor("self");
  if (n.failed()) return {};
  if (n.op == "aten.logical_not")
    return n.e.logicalNot(n.e.cast(x, n.e.builder().getI1Type()));
  return x.isBool() ? n.e.logicalNot(x) : n.e.bitXor(x, n.e.splatLike(-1, x));
}

Val importWhere(NodeContext& n) {
  const ElementType type = n.resultType();
  Val condition = n.operand("condition", {n.e.builder().getI1Type()});
  Val a = n.operand("self", type), b = n.operand("other", type);
  return n.failed() ? Val() : n.e.select(condition, a, b);
}

Val importMaskedFill(NodeContext& n) {
  Val x = n.tensor("self"), mask = n.tensor("mask");
  Val value = n.operand("value", x.elementType());
  return n.failed() ? Val() : n.e.select(mask, value, x);
}

Val importClamp(NodeContext& n) {
  const ElementType type = n.resultType();
  Val x = n.operand("self", type);
  const bool has_min = n.op != "aten.clamp_max" && n.has("min");
  const bool has_max = n.op != "aten.clamp_min" && n.has("max");
  if (has_min) x = n.e.maximum(x, n.operand("min", type));
  if (has_max && !n.failed()) x = n.e.minimum(x, n.operand("max", type));
  return n.failed() ? Val() : x;
}

Val importIsNan(NodeContext& n) {
  Val x = n.tensor("self");
  if (n.failed()) return {};
  if (!x.isFloat()) return n.e.splat(0, n.e.builder().getI1Type(), x.shape());
  if (n.op == "aten.isinf")
    return n.e.compare(Compare::eq, n.e.abs(x), INFINITY);
  return {
      n.e.create<arith::CmpFOp>(arith::CmpFPredicate::UNO, x.value, x.value)};
}

}  // namespace partita::torch
