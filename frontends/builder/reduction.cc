#include "frontends/builder/reduction.h"

#include "frontends/builder/activation.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace partita::builder {

using nn::ReduceKind;

Val logSumExp(Emitter& e, Val x, Dims dims, bool keep_dims) {
  Val largest = e.reduce(ReduceKind::max, x, dims, /*keep_dims=*/true);
  Val is_infinite = e.compare(Compare::eq, e.abs(largest), INFINITY);
  Val shift = e.select(is_infinite, e.splatLike(0, largest), largest);
  Val sum = e.reduce(ReduceKind::sum, exp(e, e.sub(x, shift)), dims, true);
  Val result = e.add(e.unary<mlir::math::LogOp>(sum), shift);
  return keep_dims
             ? result
             : e.reshape(
                   result,
                   e.reduce(ReduceKind::sum, largest, dims, false).shape());
}

Val argExtreme(Emitter& e, Val x, int64_t axis, bool is_max, bool last) {
  Val extreme =
      e.reduce(is_max ? ReduceKind::max : ReduceKind::min, x, {axis}, true);
  Val index = e.iota(x.shape(), axis, e.i64());
  Val other = e.splat(last ? -1 : static_cast<double>(x.dim(axis)), e.i64());
  Val hits = e.select(e.compare(Compare::eq, x, extreme), index, other);
  return e.reduce(last ? ReduceKind::max : ReduceKind::min, hits, {axis}, true);
}

std::pair<Val, Val> topK(Emitter& e, Val x, int64_t k, int64_t axis,
                         bool largest) {
  Shape perm = countUp(x.rank());
  std::swap(perm[axis], perm.back());
  Val moved = e.transpose(x, perm);
  Shape shape(moved.shape());
  shape.back() = k;
  auto results = e.finish(
      nn::TopKOp::create(e.builder(), e.loc(), e.tensor(shape, x.element()),
                         e.tensor(shape, e.i64()), moved.value, largest));
  return {e.transpose({results[0]}, perm), e.transpose({results[1]}, perm)};
}

Val cumulate(Emitter& e, ReduceKind kind, Val x, int64_t axis,
             bool is_exclusive, bool is_reverse) {
  int64_t size = x.dim(axis);
  if (size == 0) return x;
  Val window_input = x;
  if (is_exclusive) {
    // Result i covers the elements before i: drop the last element and add one
    // element of padding.
    if (size == 1)
      return e.broadcast(e.neutral(kind, x.elementType()), x.shape());
    window_input = e.sliceDim(x, axis, is_reverse ? 1 : 0, size - 1);
  }
  Shape window(x.rank(), 1), ones(x.rank(), 1), low(x.rank(), 0),
      high(x.rank(), 0);
  window[axis] = size;
  (is_reverse ? high : low)[axis] = is_exclusive ? size : size - 1;
  return e.reduceWindow(kind, window_input, window, ones, ones, low, high);
}

}  // namespace partita::builder
