// Products and convolutions of small integers with scales and zero points.
#include "frontends/builder/window.h"
#include "frontends/onnx/ops/ops.h"

namespace partita::onnx {
namespace {

// The parameter of a product's operand, in a shape that broadcasts to it: one
// element, one for each row or column of the matrices, or a tensor of rank
// `rank`.
FailureOr<Val> matrixParameter(NodeContext& n, Val parameter, Val x,
                               bool by_row) {
  if (parameter.size() == 1) return n.e.reshape(parameter, {});
  if (parameter.rank() == x.rank()) return parameter;
  Shape shape(2, 1);
  const int64_t wanted = x.rank() < 2 ? 0 : x.dim(x.rank() - (by_row ? 2 : 1));
  shape[by_row ? 0 : 1] = wanted;
  if (parameter.rank() == 1 && parameter.dim(0) == wanted)
    return n.e.reshape(parameter, shape);
  return n.error(
      "expected a scale and a zero point of one element, or of one "
      "for each of " +
      llvm::Twine(wanted) + (by_row ? " rows" : " columns") +
      ", found the shape " + toString(parameter.shape()));
}

// Input `i`, less the zero point in input `zero` if it is there, as i32.
FailureOr<Val> integersFrom(NodeContext& n, unsigned i, unsigned zero,
                            bool by_row) {
  const ElementType i32{n.e.builder().getI32Type()};
  const Val x = n.in(i), steps = n.e.cast(x, i32);
  if (!n.has(zero)) return steps;
  auto point = matrixParameter(n, n.in(zero), x, by_row);
  if (failed(point)) return failure();
  return n.e.sub(steps, n.e.cast(*point, i32));
}

// Input `i` times the scale in the next input, less the zero point in the one
// after that, as f32.
FailureOr<Val> realsFrom(NodeContext& n, unsigned i, bool by_row) {
  auto steps = integersFrom(n, i, i + 2, by_row);
  auto scale = matrixParameter(n, n.in(i + 1), n.in(i), by_row);
  if (failed(steps) || failed(scale)) return failure();
  return n.e.mul(n.e.cast(*steps, n.e.f32()), n.e.cast(*scale, n.e.f32()));
}

// The parameter of a convolution's input or result, which has one element, as a
// scalar.
FailureOr<Val> scalarFrom(NodeContext& n, unsigned i) {
  if (n.in(i).size() == 1) return n.e.reshape(n.in(i), {});
  return n.error("expected one element in input " + llvm::Twine(i) +
                 ", found the shape " + toString(n.in(i).shape()));
}

// The parameter of a convolution's weight: one element, or one for each channel
// of the result, in a shape that broadcasts to the weight.
FailureOr<Val> channelsFrom(NodeContext& n, unsigned i, Val weight) {
  const Val parameter = n.in(i);
  if (parameter.size() == 1) return n.e.reshape(parameter, {});
  Shape shape(weight.rank(), 1);
  const int64_t wanted = weight.rank() == 0 ? 0 : weight.dim(0);
  if (!shape.empty()) shape[0] = wanted;
  if (parameter.rank() == 1 && parameter.dim(0) == wanted)
    return n.e.reshape(parameter, shape);
  return n.error("expected one element in input " + llvm::Twine(i) +
                 ", or one for each of " + llvm::Twine(wanted) +
                 " channels, found the shape " + toString(parameter.shape()));
}

// Fails unless input `i` has integers of 8 bits.
LogicalResult expectBytes(NodeContext& n, unsigned i) {
  auto type = mlir::dyn_cast<mlir::IntegerType>(n.in(i).element());
  if (type && type.getWidth() == 8) return mlir::success();
  std::string found;
  llvm::raw_string_ostream(found) << n.in(i).element();
  return n.error("expected integers of 8 bits in input " + llvm::Twine(i) +
                 ", found " + found);
}

// True if all sums of a convolution of integers of 8 bits have at most 24 bits,
// which f32 represents.
bool fitsF32(Val weight) {
  constexpr int64_t kLargest = int64_t{255} * 255, kEnd = int64_t{1} << 24;
  const int64_t terms = weight.rank() == 0 || weight.dim(0) == 0
                            ? 0
                            : weight.size() / weight.dim(0);
  return terms <= kEnd / kLargest;
}

}  // namespace

LogicalResult importMatMulInteger(NodeContext& n) {
  auto a = integersFrom(n, 0, 2, /*by_row=*/true);
  auto b = integersFrom(n, 1, 3, /*by_row=*/false);
  if (failed(a) || failed(b)) return failure();
  return n.result(n.e.matmul(*a, *b));
}

LogicalResult importQLinearMatMul(NodeContext& n) {
  auto a = realsFrom(n, 0, /*by_row=*/true);
  auto b = realsFrom(n, 3, /*by_row=*/false);
  if (failed(a) || failed(b)) return failure();
  const Val y = n.e.matmul(*a, *b), zero = n.in(7);
  auto scale = matrixParameter(n, n.in(6), y, /*by_row=*/true);
  auto point = matrixParameter(n, zero, y, /*by_row=*/true);
  if (failed(scale) || failed(point)) return failure();
  if (!mlir::isa<mlir::IntegerType>(zero.element()))
    return n.error("expected a zero point of integers");
  return n.result(toInteger(n.e, n.e.div(y, n.e.cast(*scale, n.e.f32())),
                            *point, zero.elementType()));
}

LogicalResult importConvInteger(NodeContext& n) {
  if (failed(expectBytes(n, 0)) || failed(expectBytes(n, 1))) return failure();
  const ElementType i32{n.e.builder().getI32Type()};
  Val x = n.e.cast(n.in(0), i32), weight = n.e.cast(n.in(1), i32);
  if (n.has(2)) {
    auto zero = scalarFrom(n, 2);
    if (failed(zero)) return failure();
    x = n.e.sub(x, n.e.cast(*zero, i32));
  }
  if (n.has(3)) {
    auto zero = channelsFrom(n, 3, weight);
    if (failed(zero)) return failure();
    weight = n.e.sub(weight, n.e.cast(*zero, i32));
  }
  // Sums of floats, which are exact.
  const ElementType real{
      fitsF32(weight) ? n.e.f32() : mlir::Type(n.e.builder().getF64Type())};
  auto y = convolution(n, n.e.cast(x, real), n.e.cast(weight, real));
  if (failed(y)) return failure();
  return n.result(n.e.cast(*y, i32));
}

LogicalResult importQLinearConv(NodeContext& n) {
  if (failed(expectBytes(n, 0)) || failed(expectBytes(n, 3)) ||
      failed(expectBytes(n, 7)))
    return failure();
  const ElementType i32{n.e.builder().getI32Type()};
  const Val weight = n.in(3), y_zero = n.in(7);
  auto x_scale = scalarFrom(n, 1), x_zero = scalarFrom(n, 2),
       weight_scale = channelsFrom(n, 4, weight),
       weight_zero = channelsFrom(n, 5, weight), y_scale = scalarFrom(n, 6),
       zero = scalarFrom(n, 7);
  if (failed(x_scale) || failed(x_zero) || failed(weight_scale) ||
      failed(weight_zero) || failed(y_scale) || failed(zero))
    return failure();
  const auto real = [&](Val integers, Val zero_point, Val scale) {
    const Val steps =
        n.e.sub(n.e.cast(integers, i32), n.e.cast(zero_point, i32));
    return n.e.mul(n.e.cast(steps, n.e.f32()), n.e.cast(scale, n.e.f32()));
  };
  auto y = convolution(n, real(n.in(0), *x_zero, *x_scale),
                       real(weight, *weight_zero, *weight_scale));
  if (failed(y)) return failure();
  if (n.has(8)) {
    if (n.in(8).size() != weight.dim(0))
      return n.error(
          "expected one element for each of " + llvm::Twine(weight.dim(0)) +
          " channels in input 8, found the shape " + toString(n.in(8).shape()));
    const Val steps =
        n.e.mul(n.e.cast(*x_scale, n.e.f32()), n.e.cast(n.in(4), n.e.f32()));
    *y = builder::addChannelBias(
        n.e, *y,
        n.e.mul(n.e.cast(n.in(8), n.e.f32()),
                steps.size() == 1 ? n.e.reshape(steps, {}) : steps));
  }
  return n.result(toInteger(n.e, n.e.div(*y, n.e.cast(*y_scale, n.e.f32())),
                            *zero, y_zero.elementType()));
}

}  // namespace partita::onnx
