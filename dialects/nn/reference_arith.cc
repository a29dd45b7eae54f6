// Reference implementations of arith and math operations on tensors, as
// external models. There is one template per kind of signature (float to float,
// integer to integer, comparison, conversion), and a list of operations with
// the function that each computes on one element. Floats are computed in double
// and rounded once to the element type.
#include <cmath>
#include <limits>
#include <optional>

#include "dialects/nn/dialect.h"
#include "dialects/nn/integer_math.h"
#include "llvm/ADT/APSInt.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace partita::nn {
namespace {

using mlir::ArrayRef;
using mlir::failure;
using mlir::FailureOr;
using mlir::Operation;
using mlir::RankedTensorType;
using mlir::SmallVector;
namespace arith = mlir::arith;
namespace math = mlir::math;

using Results = FailureOr<SmallVector<Tensor>>;

unsigned widthOf(const Tensor& tensor) {
  const mlir::Type element = tensor.type().getElementType();
  return element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
}

// A zero tensor of the operation's result type; nothing if the result is a
// scalar.
std::optional<Tensor> makeResult(Operation* op) {
  const auto type =
      mlir::dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (!type || !type.hasStaticShape() ||
      !type.getElementType().isIntOrIndexOrFloat())
    return std::nullopt;
  return Tensor(type);
}

Results one(Tensor result) { return SmallVector<Tensor>{std::move(result)}; }

// Makes `function(operation, operands)` the reference of operation `Op`.
template <typename Op, Results (*function)(Operation*, ArrayRef<Tensor>)>
struct Model : ReferenceOpInterface::ExternalModel<Model<Op, function>, Op> {
  Results evaluate(Operation* op, ArrayRef<Tensor> operands) const {
    return function(op, operands);
  }
};

//===----------------------------------------------------------------------===//
// Floats to float
//===----------------------------------------------------------------------===//

using Float1 = double (*)(double);
using Float2 = double (*)(double, double);
using Float3 = double (*)(double, double, double);

template <Float1 f>
Results mapFloat1(Operation* op, ArrayRef<Tensor> in) {
  std::optional<Tensor> out = makeResult(op);
  if (!out) return failure();
  for (int64_t i = 0; i < out->size(); ++i)
    out->setFloat(i, f(in[0].getFloat(i)));
  return one(*std::move(out));
}

template <Float2 f>
Results mapFloat2(Operation* op, ArrayRef<Tensor> in) {
  std::optional<Tensor> out = makeResult(op);
  if (!out) return failure();
  for (int64_t i = 0; i < out->size(); ++i)
    out->setFloat(i, f(in[0].getFloat(i), in[1].getFloat(i)));
  return one(*std::move(out));
}

template <Float3 f>
Results mapFloat3(Operation* op, ArrayRef<Tensor> in) {
  std::optional<Tensor> out = makeResult(op);
  if (!out) return failure();
  for (int64_t i = 0; i < out->size(); ++i) {
    out->setFloat(i,
                  f(in[0].getFloat(i), in[1].getFloat(i), in[2].getFloat(i)));
  }
  return one(*std::move(out));
}

Results sineAndCosine(Operation* op, ArrayRef<Tensor> in) {
  std::optional<Tensor> sine = makeResult(op);
  if (!sine) return failure();
  Tensor cosine = *sine;
  for (int64_t i = 0; i < sine->size(); ++i) {
    sine->setFloat(i, std::sin(in[0].getFloat(i)));
    cosine.setFloat(i, std::cos(in[0].getFloat(i)));
  }
  return Results({*std::move(sine), std::move(cosine)});
}

template <bool (*f)(double)>
Results classifyFloat(Operation* op, ArrayRef<Tensor> in) {
  std::optional<Tensor> out = makeResult(op);
  if (!out) return failure();
  for (int64_t i = 0; i < out->size(); ++i)
    out->setInt(i, f(in[0].getFloat(i)));
  return one(*std::move(out));
}

double add(double a, double b) { return a + b; }
double subtract(double a, double b) { return a - b; }
double multiply(double a, double b) { return a * b; }
double divide(double a, double b) { return a / b; }
double identity(double a) { return a; }
double negate(double a) { return -a; }
double rsqrt(double a) { return 1 / std::sqrt(a); }
// maximumf and minimumf: NaN if an operand is NaN, and -0 < 0.
double maximum(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return a + b;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}
double minimum(double a, double b) { return -maximum(-a, -b); }
double clamp(double a, double low, double high) {
  return minimum(maximum(a, low), high);
}
double roundEven(double a) { return std::nearbyint(a); }
bool isNan(double a) { return std::isnan(a); }
bool isInf(double a) { return std::isinf(a); }
bool isFinite(double a) { return std::isfinite(a); }

//===----------------------------------------------------------------------===//
// Integers to integer
//===----------------------------------------------------------------------===//

using Int1 = int64_t (*)(int64_t, unsigned width);
using IntS2 = MaybeInt (*)(int64_t, int64_t, unsigned width);
using IntU2 = MaybeInt (*)(uint64_t, uint64_t, unsigned width);

template <Int1 f>
Results mapInt1(Operation* op, ArrayRef<Tensor> in) {
  std::optional<Tensor> out = makeResult(op);
  if (!out) return failure();
  const unsigned width = widthOf(in[0]);
  for (int64_t i = 0; i < out->size(); ++i)
    out->setInt(i, f(asSigned(in[0].getInt(i), width), width));
  return one(*std::move(out));
}

template <IntS2 f>
Results mapSigned2(Operation* op, ArrayRef<Tensor> in) {
  std::optional<Tensor> out = makeResult(op);
  if (!out) return failure();
  const unsigned width = widthOf(in[0]);
  for (int64_t i = 0; i < out->size(); ++i) {
    const MaybeInt value = f(asSigned(in[0].getInt(i), width),
                             asSigned(in[1].getInt(i), width), width);
    if (!value) return failure();
    out->setInt(i, *value);
  }
  return one(*std::move(out));
}

template <IntU2 f>
Results mapUnsigned2(Operation* op, ArrayRef<Tensor> in) {
  std::optional<Tensor> out = makeResult(op);
  if (!out) return failure();
  const unsigned width = widthOf(in[0]);
  for (int64_t i = 0; i < out->size(); ++i) {
    const MaybeInt value = f(asUnsigned(in[0].getInt(i), width),
                             asUnsigned(in[1].getInt(i), width), width);
    if (!value) return failure();
    out->setInt(i, *value);
  }
  return one(*std::move(out));
}

//===----------------------------------------------------------------------===//
// Comparison, selection, constants
//===----------------------------------------------------------------------===//

Results compareFloats(Operation* op, ArrayRef<Tensor> in) {
  std::optional<Tensor> out = makeResult(op);
  if (!out) return failure();
  using P = arith::CmpFPredicate;
  const P predicate = mlir::cast<arith::CmpFOp>(op).getPredicate();
  for (int64_t i = 0; i < out->size(); ++i) {
    const double a = in[0].getFloat(i), b = in[1].getFloat(i);
    const bool unordered = std::isnan(a) || std::isnan(b);
    bool holds = false;
    switch (predicate) {
      case P::AlwaysFalse:
        break;
      case P::OEQ:
        holds = a == b;
        break;
      case P::OGT:
        holds = a > b;
        break;
      case P::OGE:
        holds = a >= b;
        break;
      case P::OLT:
        holds = a < b;
        break;
      case P::OLE:
        holds = a <= b;
        break;
      case P::ONE:
        holds = a < b || a > b;
        break;
      case P::ORD:
        holds = !unordered;
        break;
      case P::UEQ:
        holds = unordered || a == b;
        break;
      case P::UGT:
        holds = unordered || a > b;
        break;
      case P::UGE:
        holds = unordered || a >= b;
        break;
      case P::ULT:
        holds = unordered || a < b;
        break;
      case P::ULE:
        holds = unordered || a <= b;
        break;
      case P::UNE:
        holds = unordered || a != b;
        break;
      case P::UNO:
        holds = unordered;
        break;
      case P::AlwaysTrue:
        holds = true;
        break;
    }
    out->setInt(i, holds);
  }
  return one(*std::move(out));
}

Results compareInts(Operation* op, ArrayRef<Tensor> in) {
  std::optional<Tensor> out = makeResult(op);
  if (!out) return failure();
  const arith::CmpIPredicate predicate =
      mlir::cast<arith::CmpIOp>(op).getPredicate();
  for (int64_t i = 0; i < out->size(); ++i) {
    out->setInt(i, compareInt(predicate, in[0].getInt(i), in[1].getInt(i),
                              widthOf(in[0])));
  }
  return one(*std::move(out));
}

Results select(Operation* op, ArrayRef<Tensor> in) {
  std::optional<Tensor> out = makeResult(op);
  if (!out) return failure();
  for (int64_t i = 0; i < out->size(); ++i)
    out->copyFrom(i, in[0].getInt(i) ? in[1] : in[2], i);
  return one(*std::move(out));
}

Results constant(Operation* op, ArrayRef<Tensor>) {
  const auto value = mlir::dyn_cast<mlir::DenseElementsAttr>(
      mlir::cast<arith::ConstantOp>(op).getValue());
  if (!value || !makeResult(op)) return failure();
  return one(Tensor::fromAttr(value));
}

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

Results floatToFloat(Operation* op, ArrayRef<Tensor> in) {
  return mapFloat1<identity>(op, in);
}

template <bool is_signed>
Results intToInt(Operation* op, ArrayRef<Tensor> in) {
  std::optional<Tensor> out = makeResult(op);
  if (!out) return failure();
  const unsigned width = widthOf(in[0]);
  for (int64_t i = 0; i < out->size(); ++i) {
    const int64_t value = in[0].getInt(i);
    out->setInt(i, is_signed ? asSigned(value, width)
                             : static_cast<int64_t>(asUnsigned(value, width)));
  }
  return one(*std::move(out));
}

template <bool is_signed>
Results intToFloat(Operation* op, ArrayRef<Tensor> in) {
  std::optional<Tensor> out = makeResult(op);
  if (!out) return failure();
  const unsigned width = widthOf(in[0]);
  for (int64_t i = 0; i < out->size(); ++i) {
    const int64_t value = in[0].getInt(i);
    out->setFloat(i, is_signed ? static_cast<double>(asSigned(value, width))
                               : static_cast<double>(asUnsigned(value, width)));
  }
  return one(*std::move(out));
}

// Values outside the integer's range are undefined in arith; here they become
// the nearest integer in range, and NaN becomes 0.
template <bool is_signed>
Results floatToInt(Operation* op, ArrayRef<Tensor> in) {
  std::optional<Tensor> out = makeResult(op);
  if (!out) return failure();
  const unsigned width = widthOf(*out);
  for (int64_t i = 0; i < out->size(); ++i) {
    llvm::APSInt value(width, !is_signed);
    bool exact;
    llvm::APFloat(in[0].getFloat(i))
        .convertToInteger(value, llvm::APFloat::rmTowardZero, &exact);
    out->setInt(i, is_signed ? value.getSExtValue()
                             : static_cast<int64_t>(value.getZExtValue()));
  }
  return one(*std::move(out));
}

Results bitcast(Operation* op, ArrayRef<Tensor> in) {
  if (!makeResult(op)) return failure();
  FailureOr<Tensor> out = Tensor::fromBytes(
      mlir::cast<RankedTensorType>(op->getResult(0).getType()),
      in[0].toBytes());
  if (failed(out)) return failure();
  return one(*std::move(out));
}

Results powerOfInt(Operation* op, ArrayRef<Tensor> in) {
  std::optional<Tensor> out = makeResult(op);
  if (!out) return failure();
  const unsigned width = widthOf(in[1]);
  for (int64_t i = 0; i < out->size(); ++i) {
    out->setFloat(i, std::pow(in[0].getFloat(i), static_cast<double>(asSigned(
                                                     in[1].getInt(i), width))));
  }
  return one(*std::move(out));
}

//===----------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------===//

template <typename Op, Results (*function)(Operation*, ArrayRef<Tensor>)>
void attach(mlir::MLIRContext* context) {
  Op::template attachInterface<Model<Op, function>>(*context);
}

void attachToArith(mlir::MLIRContext* c, arith::ArithDialect*) {
  attach<arith::ConstantOp, constant>(c);
  attach<arith::SelectOp, select>(c);
  attach<arith::CmpFOp, compareFloats>(c);
  attach<arith::CmpIOp, compareInts>(c);

  attach<arith::AddFOp, mapFloat2<add>>(c);
  attach<arith::SubFOp, mapFloat2<subtract>>(c);
  attach<arith::MulFOp, mapFloat2<multiply>>(c);
  attach<arith::DivFOp, mapFloat2<divide>>(c);
  attach<arith::RemFOp, mapFloat2<std::fmod>>(c);
  attach<arith::NegFOp, mapFloat1<negate>>(c);
  attach<arith::MaximumFOp, mapFloat2<maximum>>(c);
  attach<arith::MinimumFOp, mapFloat2<minimum>>(c);
  attach<arith::MaxNumFOp, mapFloat2<std::fmax>>(c);
  attach<arith::MinNumFOp, mapFloat2<std::fmin>>(c);

  attach<arith::AddIOp, mapUnsigned2<addInt>>(c);
  attach<arith::SubIOp, mapUnsigned2<subtractInt>>(c);
  attach<arith::MulIOp, mapUnsigned2<multiplyInt>>(c);
  attach<arith::DivUIOp, mapUnsigned2<divideUnsigned>>(c);
  attach<arith::DivSIOp, mapSigned2<divideSigned>>(c);
  attach<arith::CeilDivUIOp, mapUnsigned2<ceilDivideUnsigned>>(c);
  attach<arith::CeilDivSIOp, mapSigned2<ceilDivideSigned>>(c);
  attach<arith::FloorDivSIOp, mapSigned2<floorDivideSigned>>(c);
  attach<arith::RemUIOp, mapUnsigned2<remainderUnsigned>>(c);
  attach<arith::RemSIOp, mapSigned2<remainderSigned>>(c);
  attach<arith::AndIOp, mapUnsigned2<andInt>>(c);
  attach<arith::OrIOp, mapUnsigned2<orInt>>(c);
  attach<arith::XOrIOp, mapUnsigned2<xorInt>>(c);
  attach<arith::ShLIOp, mapUnsigned2<shiftLeft>>(c);
  attach<arith::ShRUIOp, mapUnsigned2<shiftRightUnsigned>>(c);
  attach<arith::ShRSIOp, mapSigned2<shiftRightSigned>>(c);
  attach<arith::MaxSIOp, mapSigned2<maxSigned>>(c);
  attach<arith::MaxUIOp, mapUnsigned2<maxUnsigned>>(c);
  attach<arith::MinSIOp, mapSigned2<minSigned>>(c);
  attach<arith::MinUIOp, mapUnsigned2<minUnsigned>>(c);

  attach<arith::ExtFOp, floatToFloat>(c);
  attach<arith::TruncFOp, floatToFloat>(c);
  attach<arith::ExtSIOp, intToInt<true>>(c);
  attach<arith::ExtUIOp, intToInt<false>>(c);
  attach<arith::TruncIOp, intToInt<false>>(c);
  attach<arith::IndexCastOp, intToInt<true>>(c);
  attach<arith::IndexCastUIOp, intToInt<false>>(c);
  attach<arith::SIToFPOp, intToFloat<true>>(c);
  attach<arith::UIToFPOp, intToFloat<false>>(c);
  attach<arith::FPToSIOp, floatToInt<true>>(c);
  attach<arith::FPToUIOp, floatToInt<false>>(c);
  attach<arith::BitcastOp, bitcast>(c);
}

void attachToMath(mlir::MLIRContext* c, math::MathDialect*) {
  attach<math::AbsFOp, mapFloat1<std::fabs>>(c);
  attach<math::AcosOp, mapFloat1<std::acos>>(c);
  attach<math::AcoshOp, mapFloat1<std::acosh>>(c);
  attach<math::AsinOp, mapFloat1<std::asin>>(c);
  attach<math::AsinhOp, mapFloat1<std::asinh>>(c);
  attach<math::AtanOp, mapFloat1<std::atan>>(c);
  attach<math::AtanhOp, mapFloat1<std::atanh>>(c);
  attach<math::CbrtOp, mapFloat1<std::cbrt>>(c);
  attach<math::CeilOp, mapFloat1<std::ceil>>(c);
  attach<math::CosOp, mapFloat1<std::cos>>(c);
  attach<math::CoshOp, mapFloat1<std::cosh>>(c);
  attach<math::ErfOp, mapFloat1<std::erf>>(c);
  attach<math::ErfcOp, mapFloat1<std::erfc>>(c);
  attach<math::ExpOp, mapFloat1<std::exp>>(c);
  attach<math::Exp2Op, mapFloat1<std::exp2>>(c);
  attach<math::ExpM1Op, mapFloat1<std::expm1>>(c);
  attach<math::FloorOp, mapFloat1<std::floor>>(c);
  attach<math::LogOp, mapFloat1<std::log>>(c);
  attach<math::Log10Op, mapFloat1<std::log10>>(c);
  attach<math::Log1pOp, mapFloat1<std::log1p>>(c);
  attach<math::Log2Op, mapFloat1<std::log2>>(c);
  attach<math::RoundEvenOp, mapFloat1<roundEven>>(c);
  attach<math::RoundOp, mapFloat1<std::round>>(c);
  attach<math::RsqrtOp, mapFloat1<rsqrt>>(c);
  attach<math::SinOp, mapFloat1<std::sin>>(c);
  attach<math::SincosOp, sineAndCosine>(c);
  attach<math::SinhOp, mapFloat1<std::sinh>>(c);
  attach<math::SqrtOp, mapFloat1<std::sqrt>>(c);
  attach<math::TanOp, mapFloat1<std::tan>>(c);
  attach<math::TanhOp, mapFloat1<std::tanh>>(c);
  attach<math::TruncOp, mapFloat1<std::trunc>>(c);

  attach<math::Atan2Op, mapFloat2<std::atan2>>(c);
  attach<math::CopySignOp, mapFloat2<std::copysign>>(c);
  attach<math::PowFOp, mapFloat2<std::pow>>(c);
  attach<math::ClampFOp, mapFloat3<clamp>>(c);
  attach<math::FmaOp, mapFloat3<std::fma>>(c);
  attach<math::FPowIOp, powerOfInt>(c);

  attach<math::IsFiniteOp, classifyFloat<isFinite>>(c);
  attach<math::IsInfOp, classifyFloat<isInf>>(c);
  attach<math::IsNaNOp, classifyFloat<isNan>>(c);

  attach<math::AbsIOp, mapInt1<absolute>>(c);
  attach<math::CountLeadingZerosOp, mapInt1<leadingZeros>>(c);
  attach<math::CountTrailingZerosOp, mapInt1<trailingZeros>>(c);
  attach<math::CtPopOp, mapInt1<countOnes>>(c);
  attach<math::IPowIOp, mapSigned2<power>>(c);
}

}  // namespace

void registerReferenceModels(mlir::DialectRegistry& registry) {
  registry.addExtension(+attachToArith);
  registry.addExtension(+attachToMath);
}

}  // namespace partita::nn
