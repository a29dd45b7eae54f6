// Rules of arithmetic that takes more than one operation on lanes: division,
// powers, conversions.
#include <cmath>

#include "compiler/kernels/emit_elementwise.h"
#include "compiler/kernels/emit_float8.h"
#include "compiler/kernels/emit_models.h"
#include "compiler/kernels/emit_reduction.h"
#include "dialects/nn/dialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

namespace partita::kernels {
namespace {

using namespace mlir;

// Processors trap on x / 0 and on the lowest number / -1. Lanes without meaning
// must not trap, so their divisor becomes 1.
template <typename OpTy>
struct DivisionModel
    : KernelOpInterface::ExternalModel<DivisionModel<OpTy>, OpTy> {
  FailureOr<Lanes> emitElement(Operation* op, Emitter& emitter, unsigned number,
                               ArrayRef<Index> index) const {
    FailureOr<Operands> operands = operandsAt(op, emitter, index);
    if (failed(operands)) return failure();
    ImplicitLocOpBuilder& builder = emitter.builder();
    Type type = elementOf(op->getResult(0));
    Value &dividend = operands->values[0], &divisor = operands->values[1];
    auto equals = [&](Value value, int64_t constant) -> Value {
      Value other = emitter.constant(type, constant, operands->lanes);
      return arith::CmpIOp::create(builder, arith::CmpIPredicate::eq, value,
                                   other);
    };
    Value traps = equals(divisor, 0);
    if (!isa<arith::DivUIOp, arith::RemUIOp, arith::CeilDivUIOp>(op)) {
      Value lowest = arith::ConstantOp::create(
          builder,
          builder.getIntegerAttr(
              type, APInt::getSignedMinValue(type.getIntOrFloatBitWidth())));
      Value is_lowest =
          arith::CmpIOp::create(builder, arith::CmpIPredicate::eq, dividend,
                                emitter.splat({lowest, 0}, operands->lanes));
      Value overflows =
          arith::AndIOp::create(builder, equals(divisor, -1), is_lowest);
      traps = arith::OrIOp::create(builder, traps, overflows);
    }
    divisor = arith::SelectOp::create(
        builder, traps, emitter.constant(type, 1, operands->lanes), divisor);
    return cloneOn(op, emitter, number, *operands);
  }
  KernelRole kernelRole(Operation*) const { return KernelRole::elementwise; }
};

// The reduction whose result a value repeats; null if there is none.
nn::ReduceOp repeatedReduction(Value value) {
  while (isa_and_nonnull<nn::BroadcastOp, nn::ReshapeOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value.getDefiningOp<nn::ReduceOp>();
}

// The number that all elements of a constant share; none if they differ.
std::optional<double> splatOf(Value value) {
  while (isa_and_nonnull<nn::BroadcastOp, nn::ReshapeOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  DenseFPElementsAttr attr;
  if (!matchPattern(value, m_Constant(&attr)) || !attr.isSplat())
    return std::nullopt;
  return attr.getSplatValue<APFloat>().convertToDouble();
}

// True if an error in the last bit of `value` stays that small in all users. It
// does not if a user rounds to an integer, for example.
bool isArgumentOfSmoothFunction(Value value) {
  return llvm::all_of(value.getUsers(), [](Operation* user) {
    return isa<math::ErfOp, math::TanhOp, math::ExpOp>(user);
  });
}

// Multiplies by the reciprocal, which is computed once, if a row is divided by
// its sum (softmax), or if the argument of a smooth function is divided by a
// constant (gelu).
struct FloatDivisionModel
    : KernelOpInterface::ExternalModel<FloatDivisionModel, arith::DivFOp> {
  FailureOr<Lanes> emitElement(Operation* op, Emitter& emitter, unsigned number,
                               ArrayRef<Index> index) const {
    // The divisor comes first, because it is likelier to come from reductions;
    // see operandsAt.
    FailureOr<Lanes> divisor = emitter.element(op->getOperand(1), index);
    FailureOr<Lanes> dividend = emitter.element(op->getOperand(0), index);
    if (failed(dividend) || failed(divisor)) return failure();
    int64_t lanes = std::max(dividend->lanes, divisor->lanes);
    ImplicitLocOpBuilder& builder = emitter.builder();
    nn::ReduceOp sum = repeatedReduction(op->getOperand(1));
    bool by_sum = sum && sum.getKind() == nn::ReduceKind::sum;
    bool by_constant = splatOf(op->getOperand(1)) &&
                       isArgumentOfSmoothFunction(op->getResult(0));
    if ((by_sum || by_constant) && dividend->lanes != 0 &&
        divisor->lanes == 0) {
      Value one = emitter.constant(divisor->value.getType(), 1);
      Lanes inverse = {arith::DivFOp::create(builder, one, divisor->value), 0};
      return Lanes{arith::MulFOp::create(builder, dividend->value,
                                         emitter.splat(inverse, lanes)),
                   lanes};
    }
    return cloneOn(
        op, emitter, number,
        {{emitter.splat(*dividend, lanes), emitter.splat(*divisor, lanes)},
         lanes});
  }
  KernelRole kernelRole(Operation*) const { return KernelRole::elementwise; }
};

// Small constant powers become products, and a power of 0.5 a square root.
struct PowerModel : KernelOpInterface::ExternalModel<PowerModel, math::PowFOp> {
  FailureOr<Lanes> emitElement(Operation* op, Emitter& emitter, unsigned number,
                               ArrayRef<Index> index) const {
    std::optional<double> power = splatOf(op->getOperand(1));
    if (power && (*power == 1 || *power == 2 || *power == 3 || *power == 4 ||
                  *power == -1 || *power == 0.5)) {
      FailureOr<Lanes> base = emitter.element(op->getOperand(0), index);
      if (failed(base)) return failure();
      return Lanes{emitPower(emitter, *base, *power), base->lanes};
    }
    FailureOr<Operands> operands = operandsAt(op, emitter, index);
    if (failed(operands)) return failure();
    return cloneOn(op, emitter, number, *operands);
  }

  static Value emitPower(Emitter& emitter, Lanes base, double power) {
    ImplicitLocOpBuilder& builder = emitter.builder();
    Value x = base.value;
    Type type = getElementTypeOrSelf(x.getType());
    if (power == 1) return x;
    if (power == 0.5) {
      // pow(-0, 0.5) is 0, and pow(-inf, 0.5) is inf; a square root gives -0
      // and NaN.
      Value lowest = emitter.splat(
          {neutralElement(emitter, nn::ReduceKind::max, type), 0}, base.lanes);
      Value infinite =
          arith::CmpFOp::create(builder, arith::CmpFPredicate::OEQ, x, lowest);
      Value positive = arith::AddFOp::create(
          builder, x, emitter.constant(type, 0, base.lanes));
      Value root = math::SqrtOp::create(builder, positive);
      return arith::SelectOp::create(builder, infinite,
                                     arith::NegFOp::create(builder, x), root);
    }
    if (power == -1)
      return arith::DivFOp::create(builder,
                                   emitter.constant(type, 1, base.lanes), x);
    Value square = arith::MulFOp::create(builder, x, x);
    if (power == 2) return square;
    return arith::MulFOp::create(builder, square, power == 3 ? x : square);
  }
  KernelRole kernelRole(Operation*) const { return KernelRole::elementwise; }
};

// Squares once for each bit of the exponent. A negative exponent gives 0,
// except for the bases 1 and -1.
struct IntegerPowerModel
    : KernelOpInterface::ExternalModel<IntegerPowerModel, math::IPowIOp> {
  FailureOr<Lanes> emitElement(Operation* op, Emitter& emitter, unsigned,
                               ArrayRef<Index> index) const {
    FailureOr<Operands> operands = operandsAt(op, emitter, index);
    if (failed(operands)) return failure();
    ImplicitLocOpBuilder& builder = emitter.builder();
    int64_t lanes = operands->lanes;
    Type type = elementOf(op->getResult(0));
    auto constant = [&](int64_t value) {
      return emitter.constant(type, value, lanes);
    };
    auto is = [&](arith::CmpIPredicate predicate, Value a, int64_t b) -> Value {
      return arith::CmpIOp::create(builder, predicate, a, constant(b));
    };
    auto choose = [&](Value truth, Value a, Value b) -> Value {
      return arith::SelectOp::create(builder, truth, a, b);
    };
    Value base = operands->values[0], exponent = operands->values[1];
    Value result = constant(1), square = base;
    for (unsigned bit = 0; bit + 1 < type.getIntOrFloatBitWidth(); ++bit) {
      Value masked =
          arith::AndIOp::create(builder, exponent, constant(int64_t{1} << bit));
      Value product = arith::MulIOp::create(builder, result, square);
      result = choose(is(arith::CmpIPredicate::ne, masked, 0), product, result);
      square = arith::MulIOp::create(builder, square, square);
    }
    Value odd = is(arith::CmpIPredicate::ne,
                   arith::AndIOp::create(builder, exponent, constant(1)), 0);
    Value inverse = choose(is(arith::CmpIPredicate::eq, base, -1),
                           choose(odd, constant(-1), constant(1)), constant(0));
    inverse =
        choose(is(arith::CmpIPredicate::eq, base, 1), constant(1), inverse);
    return Lanes{
        choose(is(arith::CmpIPredicate::slt, exponent, 0), inverse, result),
        lanes};
  }
  KernelRole kernelRole(Operation*) const { return KernelRole::elementwise; }
};

struct FloatToIntegerPowerModel
    : KernelOpInterface::ExternalModel<FloatToIntegerPowerModel,
                                       math::FPowIOp> {
  FailureOr<Lanes> emitElement(Operation* op, Emitter& emitter, unsigned,
                               ArrayRef<Index> index) const {
    FailureOr<Operands> operands = operandsAt(op, emitter, index);
    if (failed(operands)) return failure();
    ImplicitLocOpBuilder& builder = emitter.builder();
    Value base = operands->values[0];
    Value exponent =
        arith::SIToFPOp::create(builder, base.getType(), operands->values[1]);
    return Lanes{math::PowFOp::create(builder, base, exponent),
                 operands->lanes};
  }
  KernelRole kernelRole(Operation*) const { return KernelRole::elementwise; }
};

// Saturates, because everything that depends on an undefined result would be
// undefined, memory accesses included. NaN becomes 0.
template <typename OpTy>
struct FloatToIntModel
    : KernelOpInterface::ExternalModel<FloatToIntModel<OpTy>, OpTy> {
  FailureOr<Lanes> emitElement(Operation* op, Emitter& emitter, unsigned number,
                               ArrayRef<Index> index) const {
    FailureOr<Operands> operands = operandsAt(op, emitter, index);
    if (failed(operands)) return failure();
    ImplicitLocOpBuilder& builder = emitter.builder();
    int64_t lanes = operands->lanes;
    Value x = operands->values[0];
    Type from = getElementTypeOrSelf(x.getType()),
         to = elementOf(op->getResult(0));
    constexpr bool is_signed = std::is_same_v<OpTy, arith::FPToSIOp>;
    unsigned width = to.getIntOrFloatBitWidth();
    auto integer = [&](const APInt& value) {
      return emitter.splat({arith::ConstantOp::create(
                                builder, builder.getIntegerAttr(to, value)),
                            0},
                           lanes);
    };
    auto compare = [&](arith::CmpFPredicate predicate, double bound) -> Value {
      return arith::CmpFOp::create(builder, predicate, x,
                                   emitter.constant(from, bound, lanes));
    };
    Value above = compare(arith::CmpFPredicate::OGE,
                          std::ldexp(1.0, is_signed ? width - 1 : width));
    Value below = compare(arith::CmpFPredicate::OLT,
                          is_signed ? -std::ldexp(1.0, width - 1) : 0);
    Value nan = arith::CmpFOp::create(builder, arith::CmpFPredicate::UNO, x, x);
    Value outside = arith::OrIOp::create(
        builder, arith::OrIOp::create(builder, above, below), nan);
    Value inside = arith::SelectOp::create(builder, outside,
                                           emitter.constant(from, 0, lanes), x);
    Value result = cloneOn(op, emitter, number, {{inside}, lanes}).value;
    APInt largest =
        is_signed ? APInt::getSignedMaxValue(width) : APInt::getMaxValue(width);
    APInt smallest =
        is_signed ? APInt::getSignedMinValue(width) : APInt::getMinValue(width);
    result = arith::SelectOp::create(builder, above, integer(largest), result);
    return Lanes{
        arith::SelectOp::create(builder, below, integer(smallest), result),
        lanes};
  }
  KernelRole kernelRole(Operation*) const { return KernelRole::elementwise; }
};

struct IsInfModel
    : KernelOpInterface::ExternalModel<IsInfModel, math::IsInfOp> {
  FailureOr<Lanes> emitElement(Operation* op, Emitter& emitter, unsigned,
                               ArrayRef<Index> index) const {
    FailureOr<Lanes> input = emitter.element(op->getOperand(0), index);
    if (failed(input)) return failure();
    ImplicitLocOpBuilder& builder = emitter.builder();
    Value size = math::AbsFOp::create(builder, input->value);
    Type type = getElementTypeOrSelf(size.getType());
    Value infinite = emitter.splat(
        {neutralElement(emitter, nn::ReduceKind::min, type), 0}, input->lanes);
    return Lanes{arith::CmpFOp::create(builder, arith::CmpFPredicate::OEQ, size,
                                       infinite),
                 input->lanes};
  }
  KernelRole kernelRole(Operation*) const { return KernelRole::elementwise; }
};

// Conversions between floats. Narrow floats are held as f32, so widening does
// nothing, but narrowing rounds.
template <typename OpTy>
struct FloatCastModel
    : KernelOpInterface::ExternalModel<FloatCastModel<OpTy>, OpTy> {
  FailureOr<Lanes> emitElement(Operation* op, Emitter& emitter, unsigned,
                               ArrayRef<Index> index) const {
    FailureOr<Lanes> input = emitter.element(op->getOperand(0), index);
    if (failed(input)) return failure();
    ImplicitLocOpBuilder& builder = emitter.builder();
    Type from = getElementTypeOrSelf(input->value.getType()),
         to = elementOf(op->getResult(0));
    Value value = input->value;
    if (isFloat8(to)) {
      if (from.isF64())
        value = arith::TruncFOp::create(
            builder, emitter.withLanes(builder.getF32Type(), input->lanes),
            value);
      value = emitter.toCompute(emitter.fromCompute(value, to), to);
    } else if (from.getIntOrFloatBitWidth() > to.getIntOrFloatBitWidth())
      value = arith::TruncFOp::create(
          builder, emitter.withLanes(to, input->lanes), value);
    Type held = emitter.computeType(to);
    if (getElementTypeOrSelf(value.getType()) != held)
      value = arith::ExtFOp::create(
          builder, emitter.withLanes(held, input->lanes), value);
    return Lanes{value, input->lanes};
  }
  KernelRole kernelRole(Operation*) const { return KernelRole::elementwise; }
};

struct BitcastModel
    : KernelOpInterface::ExternalModel<BitcastModel, arith::BitcastOp> {
  FailureOr<Lanes> emitElement(Operation* op, Emitter& emitter, unsigned,
                               ArrayRef<Index> index) const {
    FailureOr<Lanes> input = emitter.element(op->getOperand(0), index);
    if (failed(input)) return failure();
    Type from = elementOf(op->getOperand(0)), to = elementOf(op->getResult(0));
    Value value = input->value;
    if (isa<FloatType>(from)) value = emitter.fromCompute(value, from);
    value = arith::BitcastOp::create(
        emitter.builder(),
        emitter.withLanes(isFloat8(to) ? storedType(to) : to, input->lanes),
        value);
    return Lanes{isa<FloatType>(to) ? emitter.toCompute(value, to) : value,
                 input->lanes};
  }
  KernelRole kernelRole(Operation*) const { return KernelRole::elementwise; }
};

}  // namespace

void attachNumberModels(MLIRContext& context) {
  using namespace arith;
  attachModel<DivisionModel, DivSIOp, DivUIOp, RemSIOp, RemUIOp, CeilDivSIOp,
              CeilDivUIOp, FloorDivSIOp>(context);
  attachModel<FloatCastModel, ExtFOp, TruncFOp>(context);
  attachModel<FloatToIntModel, FPToSIOp, FPToUIOp>(context);
  math::IsInfOp::attachInterface<IsInfModel>(context);
  math::IPowIOp::attachInterface<IntegerPowerModel>(context);
  math::FPowIOp::attachInterface<FloatToIntegerPowerModel>(context);
  arith::BitcastOp::attachInterface<BitcastModel>(context);
  arith::DivFOp::attachInterface<FloatDivisionModel>(context);
  math::PowFOp::attachInterface<PowerModel>(context);
}

}  // namespace partita::kernels
