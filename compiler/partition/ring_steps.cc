#include "compiler/partition/ring_steps.h"

#include <limits>

#include "compiler/sharding/convert.h"

namespace partita::partition {

using mlir::RankedTensorType;
using mlir::Value;
using mlir::arith::CmpFPredicate;
using mlir::arith::CmpIPredicate;

namespace {

int64_t findDim(const core::Sharding& sharding,
                const std::vector<core::AxisRef>& axes) {
  for (auto [i, dim] : llvm::enumerate(sharding.dims))
    if (dim.axes == axes) return static_cast<int64_t>(i);
  return -1;
}

// The weight of a partial result beside others: exp(lse - highest).
Value weightOf(nn::MathBuilder& math, Value lse, Value highest) {
  return math.exp(math.subtract(lse, highest));
}

}  // namespace

int64_t RingSteps::dimOf(int operand) const {
  return findDim(form_.sharding.operands[operand], rows_.axes);
}

int64_t RingSteps::dimOfResult(int result) const {
  return findDim(form_.sharding.results[result], rows_.axes);
}

dist::AxesAttr RingSteps::axes() const {
  return sharding::axesAttr(form_.builder.getContext(), rows_.axes, form_.mesh);
}

Value RingSteps::index() const {
  return dist::CoordinateOp::create(
      form_.builder, form_.loc(),
      RankedTensorType::get({}, form_.builder.getI64Type()), axes());
}

Value RingSteps::owner(int64_t step) const {
  nn::MathBuilder math(form_.builder, form_.loc());
  const Value ahead = math.addInt(index(), -step);
  return math.select(math.compare(CmpIPredicate::slt, ahead,
                                  math.constantInt(math.typeOf(ahead), 0)),
                     math.addInt(ahead, devices()), ahead);
}

Value RingSteps::passed(Value x) const {
  return dist::PermuteOp::create(
      form_.builder, form_.loc(), x.getType(), x, axes(), axes(),
      form_.why("keys and values travel around the devices (a ring)"),
      /*shift=*/1);
}

Partial merge(nn::MathBuilder& math, const Partial& a, const Partial& b) {
  const auto type = math.typeOf(a.lse);
  const Value a_is_more = math.compare(CmpFPredicate::OGT, a.lse, b.lse);
  const Value highest = math.select(a_is_more, a.lse, b.lse);
  const Value sees_none = math.compare(
      CmpFPredicate::OEQ, highest,
      math.constant(type, -std::numeric_limits<double>::infinity()));
  const Value shift = math.select(sees_none, math.constant(type, 0), highest);
  const Value of_a = weightOf(math, a.lse, shift),
              of_b = weightOf(math, b.lse, shift);
  const Value sum = math.add(of_a, of_b);
  const Value divisor = math.select(sees_none, math.constant(type, 1), sum);
  const auto scaled = [&](Value result, Value weight) {
    const Value share = math.asFloat(math.divide(weight, divisor),
                                     math.typeOf(result).getElementType());
    return math.multiply(result, math.spread(share, result, {3}));
  };
  return {math.add(scaled(a.result, of_a), scaled(b.result, of_b)),
          math.add(math.log(sum), shift)};
}

}  // namespace partita::partition
