// Conversion between real numbers and small integers or floats, with a scale
// and a zero point per tensor, per index of a dimension, or per block.
#include <algorithm>
#include <cmath>

#include "frontends/onnx/ops/ops.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace partita::onnx {

namespace math = mlir::math;

namespace {

// Blocks of `size` consecutive elements along `axis` share one parameter.
Val repeatBlocks(Emitter& e, Val parameter, int64_t axis, int64_t size,
                 int64_t total) {
  Shape split(parameter.shape()), joined(parameter.shape());
  split.insert(split.begin() + axis + 1, 1);
  Shape repeated = split;
  repeated[axis + 1] = size;
  joined[axis] *= size;
  Val whole =
      e.reshape(e.broadcast(e.reshape(parameter, split), repeated), joined);
  return e.sliceDim(whole, axis, 0, total);
}

// The scale or the zero point, in a shape that broadcasts to the shape of `x`.
FailureOr<Val> parameterFor(NodeContext& n, Val x, Val parameter) {
  if (parameter.size() == 1) return n.e.reshape(parameter, {});
  auto axis = n.axis(n.attrInt("axis", 1), x.rank());
  if (failed(axis)) return failure();
  const int64_t block =
      std::min(n.attrInt("block_size", 0), std::max<int64_t>(x.dim(*axis), 1));
  Shape expected(x.rank(), 1);
  if (block == 0) {
    expected[*axis] = x.dim(*axis);
    if (parameter.rank() == 1 && parameter.dim(0) == x.dim(*axis))
      return n.e.reshape(parameter, expected);
    return n.error("expected a scale and a zero point of one element, or of " +
                   llvm::Twine(x.dim(*axis)) + " for dimension " +
                   llvm::Twine(*axis) + ", found the shape " +
                   toString(parameter.shape()));
  }
  if (block < 0)
    return n.error("expected a positive block_size, found " +
                   llvm::Twine(block));
  expected.assign(x.shape().begin(), x.shape().end());
  expected[*axis] = (x.dim(*axis) + block - 1) / block;
  if (parameter.shape() != Dims(expected))
    return n.error("expected a scale and a zero point of the shape " +
                   toString(expected) + " for blocks of " + llvm::Twine(block) +
                   ", found " + toString(parameter.shape()));
  return repeatBlocks(n.e, parameter, *axis, block, x.dim(*axis));
}

LogicalResult checkScale(NodeContext& n, Val scale) {
  if (scale.isFloat()) return mlir::success();
  return n.error("expected a scale of floating-point numbers");
}

// The type of the attribute `name`, or `absent` without it.
FailureOr<ElementType> typeFrom(NodeContext& n, llvm::StringRef name,
                                ElementType absent) {
  const int64_t type = n.attrInt(name, 0);
  return type == 0 ? FailureOr<ElementType>(absent) : n.elementType(type);
}

}  // namespace

Val toInteger(Emitter& e, Val real, Val zero_point, ElementType to) {
  // f32 holds all integers of 16 bits; f16 does not.
  Val result = e.cast(e.unary<math::RoundEvenOp>(real), e.f32());
  if (zero_point) result = e.add(result, e.cast(zero_point, e.f32()));
  const unsigned width = to.type.getIntOrFloatBitWidth();
  const double half = std::ldexp(1.0, width - 1);
  const double low = to.is_unsigned ? 0 : -half;
  return e.cast(e.minimum(e.maximum(result, low), low + 2 * half - 1), to);
}

LogicalResult importDynamicQuantizeLinear(NodeContext& n) {
  constexpr double kSteps = 255;
  const Val x = n.in(0);
  if (!x.isFloat()) return n.error("expected floats");
  const Shape dims = builder::countUp(x.rank());
  const auto extreme = [&](nn::ReduceKind kind) {
    return n.e.reduce(kind, x, dims, /*keep_dims=*/false);
  };
  // The range contains 0.
  const Val high = n.e.maximum(extreme(nn::ReduceKind::max), 0.0),
            low = n.e.minimum(extreme(nn::ReduceKind::min), 0.0);
  const Val step = n.e.div(n.e.sub(high, low), kSteps);
  const Val scale = n.e.select(n.e.compare(builder::Compare::eq, step, 0.0),
                               n.e.splatLike(1, step), step);
  const ElementType u8{n.e.builder().getI8Type(), /*is_unsigned=*/true};
  const Val zero = toInteger(n.e, n.e.div(n.e.neg(low), scale), {}, u8);
  n.out(0, toInteger(n.e, n.e.div(x, scale), zero, u8));
  if (n.wants(1)) n.out(1, scale);
  if (n.wants(2)) n.out(2, zero);
  return success();
}

LogicalResult importQuantizeLinear(NodeContext& n) {
  Val x = n.in(0), scale = n.in(1), zero_point;
  if (failed(checkScale(n, scale))) return failure();
  ElementType to{n.e.builder().getI8Type(), /*is_unsigned=*/true};
  if (n.has(2)) {
    zero_point = n.in(2);
    to = zero_point.elementType();
    auto fitting = parameterFor(n, x, zero_point);
    if (failed(fitting)) return failure();
    zero_point = *fitting;
  }
  auto type = typeFrom(n, "output_dtype", to);
  auto precision = typeFrom(n, "precision", scale.elementType());
  auto fitting = parameterFor(n, x, scale);
  if (failed(type) || failed(precision) || failed(fitting)) return failure();
  if (n.has(2) && !(*type == to))
    return n.error("expected output_dtype to be the zero point's type");
  Val real = n.e.div(n.e.cast(x, *precision), n.e.cast(*fitting, *precision));
  if (!mlir::isa<mlir::IntegerType>(type->type)) {
    if (zero_point) real = n.e.add(real, n.e.cast(zero_point, *precision));
    return castTo(n, real, *type);
  }
  const unsigned width = type->type.getIntOrFloatBitWidth();
  if (width > 16)
    return n.error("expected integers of at most 16 bits, found " +
                   llvm::Twine(width));
  return n.result(toInteger(n.e, real, zero_point, *type));
}

LogicalResult importDequantizeLinear(NodeContext& n) {
  Val x = n.in(0), scale = n.in(1);
  if (failed(checkScale(n, scale))) return failure();
  auto type = typeFrom(n, "output_dtype", scale.elementType());
  auto fitting = parameterFor(n, x, scale);
  if (failed(type) || failed(fitting)) return failure();
  // The difference of integers may need one bit more than they have.
  const ElementType wide = x.isFloat()
                               ? scale.elementType()
                               : ElementType{n.e.builder().getI32Type()};
  Val steps = n.e.cast(x, wide);
  if (n.has(2)) {
    auto zero_point = parameterFor(n, x, n.in(2));
    if (failed(zero_point)) return failure();
    steps = n.e.sub(steps, n.e.cast(*zero_point, wide));
  }
  Val real = n.e.mul(n.e.cast(steps, scale.elementType()), *fitting);
  return n.result(n.e.cast(real, *type));
}

}  // namespace partita::onnx
