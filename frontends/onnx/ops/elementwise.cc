// Arithmetic, comparison, logic and mathematical functions, element by element.
#include "frontends/onnx/ops/ops.h"
#include "llvm/ADT/StringSwitch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace partita::onnx {

namespace arith = mlir::arith;
namespace math = mlir::math;

namespace {

using Unary = Val (Emitter::*)(Val);
using Binary = Val (Emitter::*)(Val, Val);

Val reciprocal(Emitter& e, Val x) { return e.div(e.splatLike(1, x), x); }

Val sign(Emitter& e, Val x) {
  if (x.is_unsigned)
    return e.cast(e.compare(Compare::ne, x, 0.0), x.elementType());
  // 0 and NaN stay unchanged.
  Val negative =
      e.select(e.compare(Compare::lt, x, 0.0), e.splatLike(-1, x), x);
  return e.select(e.compare(Compare::gt, x, 0.0), e.splatLike(1, x), negative);
}

// Before opset 7, broadcasting was optional and aligned the second operand at
// `axis` of the first.
LogicalResult alignLegacy(NodeContext& n, Val a, Val& b) {
  if (n.opset >= 7 || n.attrInt("broadcast", 0) == 0 || !n.hasAttr("axis"))
    return success();
  auto axis = n.axis(n.attrInt("axis", 0), a.rank());
  if (failed(axis)) return failure();
  if (*axis + b.rank() > a.rank())
    return n.error("expected an axis at which the second input fits the first");
  Shape shape(b.shape());
  shape.append(a.rank() - *axis - b.rank(), 1);
  b = n.e.reshape(b, shape);
  return success();
}

}  // namespace

LogicalResult importUnary(NodeContext& n) {
  Val x = n.in(0);
  auto method = llvm::StringSwitch<Unary>(n.op())
                    .Case("Abs", &Emitter::abs)
                    .Case("Neg", &Emitter::neg)
                    .Case("Exp", &Emitter::unary<math::ExpOp>)
                    .Case("Log", &Emitter::unary<math::LogOp>)
                    .Case("Sqrt", &Emitter::unary<math::SqrtOp>)
                    .Case("Erf", &Emitter::unary<math::ErfOp>)
                    .Case("Sin", &Emitter::unary<math::SinOp>)
                    .Case("Cos", &Emitter::unary<math::CosOp>)
                    .Case("Tan", &Emitter::unary<math::TanOp>)
                    .Case("Asin", &Emitter::unary<math::AsinOp>)
                    .Case("Acos", &Emitter::unary<math::AcosOp>)
                    .Case("Atan", &Emitter::unary<math::AtanOp>)
                    .Case("Sinh", &Emitter::unary<math::SinhOp>)
                    .Case("Cosh", &Emitter::unary<math::CoshOp>)
                    .Case("Tanh", &Emitter::unary<math::TanhOp>)
                    .Case("Asinh", &Emitter::unary<math::AsinhOp>)
                    .Case("Acosh", &Emitter::unary<math::AcoshOp>)
                    .Case("Atanh", &Emitter::unary<math::AtanhOp>)
                    .Case("Floor", &Emitter::unary<math::FloorOp>)
                    .Case("Ceil", &Emitter::unary<math::CeilOp>)
                    .Case("Round", &Emitter::unary<math::RoundEvenOp>)
                    .Default(nullptr);
  if (method) return n.result((n.e.*method)(x));
  return n.result(n.op() == "Sign" ? sign(n.e, x) : reciprocal(n.e, x));
}

LogicalResult importNot(NodeContext& n) {
  Val x = n.in(0);
  if (n.op() == "Not") {
    if (!x.isBool()) return n.error("expected an input of type BOOL");
    return n.result(n.e.logicalNot(x));
  }
  return n.result(n.e.bitXor(x, n.e.splatLike(-1, x)));
}

LogicalResult importBinary(NodeContext& n) {
  Val a = n.in(0), b = n.in(1);
  if (failed(alignLegacy(n, a, b))) return failure();
  auto method = llvm::StringSwitch<Binary>(n.op())
                    .Case("Add", &Emitter::add)
                    .Case("Sub", &Emitter::sub)
                    .Case("Mul", &Emitter::mul)
                    .Case("Div", &Emitter::div)
                    .Cases({"And", "BitwiseAnd"}, &Emitter::bitAnd)
                    .Cases({"Or", "BitwiseOr"}, &Emitter::bitOr)
                    .Cases({"Xor", "BitwiseXor"}, &Emitter::bitXor)
                    .Default(nullptr);
  return n.result((n.e.*method)(a, b));
}

LogicalResult importCompare(NodeContext& n) {
  Val a = n.in(0), b = n.in(1);
  if (failed(alignLegacy(n, a, b))) return failure();
  auto kind = llvm::StringSwitch<Compare>(n.op())
                  .Case("Equal", Compare::eq)
                  .Case("Less", Compare::lt)
                  .Case("LessOrEqual", Compare::le)
                  .Case("Greater", Compare::gt)
                  .Default(Compare::ge);
  return n.result(n.e.compare(kind, a, b));
}

// Min, Max, Sum and Mean of any number of inputs.
LogicalResult importVariadic(NodeContext& n) {
  llvm::SmallVector<Val> inputs = n.ins();
  Val result = inputs[0];
  for (Val input : llvm::ArrayRef(inputs).drop_front()) {
    if (n.op() == "Min") {
      result = n.e.minimum(result, input);
    } else if (n.op() == "Max") {
      result = n.e.maximum(result, input);
    } else {
      result = n.e.add(result, input);
    }
  }
  if (n.op() == "Mean")
    result = n.e.div(result, static_cast<double>(inputs.size()));
  return n.result(result);
}

LogicalResult importPow(NodeContext& n) {
  Val base = n.in(0), exponent = n.in(1);
  if (failed(alignLegacy(n, base, exponent))) return failure();
  ElementType type = base.elementType();
  if (base.isFloat())
    return n.result(n.e.binary<math::PowFOp>(base, n.e.cast(exponent, type)));
  if (exponent.isFloat()) {
    Val power = n.e.binary<math::PowFOp>(n.e.cast(base, exponent.elementType()),
                                         exponent);
    return n.result(n.e.cast(power, type));
  }
  Val power =
      n.e.binary<math::IPowIOp>({base.value}, {n.e.cast(exponent, type).value});
  return n.result({power.value, base.is_unsigned});
}

LogicalResult importMod(NodeContext& n) {
  Val a = n.in(0), b = n.in(1);
  Val remainder = n.e.remainder(a, b);
  if (n.attrInt("fmod", 0) != 0 || a.is_unsigned) return n.result(remainder);
  if (a.isFloat()) return n.error("expected fmod=1 for floats");
  // Integer remainders have the sign of the divisor, as in Python.
  Val signs_differ = n.e.compare(Compare::lt, n.e.bitXor(remainder, b), 0.0);
  Val adjust =
      n.e.bitAnd(signs_differ, n.e.compare(Compare::ne, remainder, 0.0));
  return n.result(n.e.select(adjust, n.e.add(remainder, b), remainder));
}

LogicalResult importBitShift(NodeContext& n) {
  Val x = n.in(0), shift = n.in(1);
  std::string direction = n.attrString("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    return n.error("expected direction LEFT or RIGHT");
  if (direction == "LEFT") return n.result(n.e.binary<arith::ShLIOp>(x, shift));
  return n.result(n.e.binary<arith::ShRUIOp>(x, shift));
}

LogicalResult importWhere(NodeContext& n) {
  return n.result(n.e.select(n.in(0), n.in(1), n.in(2)));
}

LogicalResult importClip(NodeContext& n) {
  Val x = n.in(0);
  if (n.opset < 11) {
    if (n.hasAttr("min")) x = n.e.maximum(x, n.attrFloat("min", 0));
    if (n.hasAttr("max")) x = n.e.minimum(x, n.attrFloat("max", 0));
    return n.result(x);
  }
  if (n.has(1)) x = n.e.maximum(x, n.in(1));
  if (n.has(2)) x = n.e.minimum(x, n.in(2));
  return n.result(x);
}

LogicalResult importIsNan(NodeContext& n) {
  Val x = n.in(0);
  return n.result(
      {n.e.create<arith::CmpFOp>(arith::CmpFPredicate::UNO, x.value, x.value)});
}

LogicalResult importIsInf(NodeContext& n) {
  Val x = n.in(0);
  bool negative = n.attrInt("detect_negative", 1),
       positive = n.attrInt("detect_positive", 1);
  if (negative && positive)
    return n.result(n.e.compare(Compare::eq, n.e.abs(x), INFINITY));
  if (!negative && !positive)
    return n.result(n.e.splat(0, n.e.builder().getI1Type(), x.shape()));
  return n.result(n.e.compare(Compare::eq, x, negative ? -INFINITY : INFINITY));
}

}  // namespace partita::onnx
