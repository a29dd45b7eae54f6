// Decomposition of nn.random: Philox 4x32-10 in i64 arithmetic on the
// positions of the result's elements.
#include <cmath>

#include "dialects/nn/dialect.h"
#include "dialects/nn/math_builder.h"
#include "dialects/nn/philox.h"

namespace partita::nn {
namespace {

using mlir::RankedTensorType;
using mlir::SmallVector;
using mlir::Value;

constexpr int64_t kLow32 = 0xFFFFFFFF;

// Each element's row-major position, computed from one iota per dimension, so
// that each dimension can be divided.
Value positions(MathBuilder& b, RankedTensorType type) {
  Value position;
  int64_t stride = 1;
  for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
    Value term = b.iota(type, dim);
    if (stride != 1) term = b.multiplyInt(term, stride);
    position = position ? b.addInt(term, position) : term;
    stride *= type.getDimSize(dim);
  }
  return position ? position : b.constantInt(type, 0);
}

// The first two output words of Philox, with the elements' positions as
// counters: i64 tensors of type `type` with values below 2^32.
std::pair<Value, Value> philoxWords(MathBuilder& b, Value seed,
                                    RankedTensorType type) {
  const Value index = positions(b, type), zero = b.constantInt(type, 0);
  Value counter[4] = {b.andInt(index, kLow32), b.shiftRight(index, 32), zero,
                      zero};
  Value key[2] = {b.andInt(seed, kLow32), b.shiftRight(seed, 32)};
  for (int round = 0; round < kPhiloxRounds; ++round) {
    // Both factors are below 2^32, so the unsigned 64-bit product is exact.
    const Value product0 =
        b.multiplyInt(counter[0], int64_t{kPhiloxMultiplier[0]});
    const Value product1 =
        b.multiplyInt(counter[2], int64_t{kPhiloxMultiplier[1]});
    const Value key0 = b.broadcast(key[0], type, {}),
                key1 = b.broadcast(key[1], type, {});
    counter[0] =
        b.xorInt(b.xorInt(b.shiftRight(product1, 32), counter[1]), key0);
    counter[1] = b.andInt(product1, kLow32);
    counter[2] =
        b.xorInt(b.xorInt(b.shiftRight(product0, 32), counter[3]), key1);
    counter[3] = b.andInt(product0, kLow32);
    for (int i = 0; i < 2; ++i)
      key[i] = b.andInt(b.addInt(key[i], int64_t{kPhiloxKeyStep[i]}), kLow32);
  }
  return {counter[0], counter[1]};
}

}  // namespace

mlir::FailureOr<SmallVector<Value>> RandomOp::decompose(
    mlir::OpBuilder& builder) {
  MathBuilder b(builder, getLoc());
  const RankedTensorType type =
      RankedTensorType::get(getType().getShape(), b.i64());
  const auto [word0, word1] = philoxWords(b, getSeed(), type);
  const double step = std::ldexp(1.0, -24);
  const mlir::Type f32 = builder.getF32Type();
  const Value high0 = b.shiftRight(word0, 8), high1 = b.shiftRight(word1, 8);
  Value result;
  if (getDistribution() == Distribution::uniform) {
    result = b.multiply(b.toFloat(high0, f32), step);
  } else {
    const Value u = b.multiply(b.toFloat(b.addInt(high0, 1), f32), step);
    const Value angle =
        b.multiply(b.toFloat(high1, f32), 2 * 3.141592653589793 * step);
    result = b.multiply(b.sqrt(b.multiply(b.log(u), -2.0)), b.cos(angle));
  }
  return SmallVector<Value>{result};
}

}  // namespace partita::nn
