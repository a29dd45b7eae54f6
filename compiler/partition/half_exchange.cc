#include "compiler/partition/half_exchange.h"

namespace partita::partition {
namespace {

using llvm::SmallVector;
using mlir::RankedTensorType;
using mlir::Value;
using mlir::ValueRange;

RankedTensorType withRows(RankedTensorType type, int64_t dim, int64_t count) {
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = count;
  return type.clone(shape);
}

}  // namespace

Halves HalfExchange::split(Value block, int64_t dim) const {
  return ordered(
      {rows(block, dim, 0),
       mirrored(rows(block, dim, half_), dim,
                "halves exchanged so that every device has the same share of "
                "the causal triangle (zig-zag)")});
}

Value HalfExchange::join(const Halves& pair, int64_t dim) const {
  const Halves halves = ordered(pair);
  const Value second = mirrored(
      halves[1], dim,
      "halves returned to the devices that hold their blocks (zig-zag)");
  const RankedTensorType type = nn::MathBuilder::typeOf(second);
  return nn::ConcatOp::create(form_.builder, form_.loc(),
                              withRows(type, dim, 2 * half_),
                              ValueRange{halves[0], second}, dim);
}

Value HalfExchange::number(Value device, int half) const {
  nn::MathBuilder math(form_.builder, form_.loc());
  const Value kept = math.multiplyInt(device, 2);
  const Value fetched =
      math.addInt(math.multiplyInt(kept, -1), 2 * steps_.devices() - 1);
  return half == 0 ? math.select(isLow(device), kept, fetched)
                   : math.select(isLow(device), fetched, kept);
}

RankedTensorType HalfExchange::typeOfHalf(RankedTensorType type,
                                          int64_t dim) const {
  return withRows(type, dim, half_);
}

// True if the half that `device` keeps is the lower of its pair.
Value HalfExchange::isLow(Value device) const {
  nn::MathBuilder math(form_.builder, form_.loc());
  const Value kept = math.multiplyInt(device, 2);
  return math.compare(mlir::arith::CmpIPredicate::slt, kept,
                      math.constantInt(math.typeOf(kept), steps_.devices()));
}

// Half a block, from row `first` on.
Value HalfExchange::rows(Value x, int64_t dim, int64_t first) const {
  const RankedTensorType type = nn::MathBuilder::typeOf(x);
  SmallVector<int64_t> starts(type.getRank(), 0), strides(type.getRank(), 1);
  starts[dim] = first;
  return nn::SliceOp::create(form_.builder, form_.loc(),
                             withRows(type, dim, half_), x, starts, strides);
}

// `x` of device n - 1 - i on device i.
Value HalfExchange::mirrored(Value x, int64_t dim,
                             const std::string& why) const {
  const int64_t size = steps_.devices() * half_;
  return dist::ExchangeOp::create(form_.builder, form_.loc(), x.getType(), x,
                                  steps_.axes(), dim, size, /*step=*/-half_,
                                  /*offset=*/size - half_, llvm::APFloat(0.0),
                                  form_.why(why));
}

// Turns the kept and the fetched half of a device into the lower and the upper
// half of its pair, and back.
Halves HalfExchange::ordered(const Halves& halves) const {
  nn::MathBuilder math(form_.builder, form_.loc());
  const RankedTensorType type = math.typeOf(halves[0]);
  const Value is_low =
      math.broadcast(isLow(steps_.index()),
                     RankedTensorType::get(type.getShape(), math.i1()), {});
  return {math.select(is_low, halves[0], halves[1]),
          math.select(is_low, halves[1], halves[0])};
}

}  // namespace partita::partition
