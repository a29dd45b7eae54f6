// Reductions, positions of extremes, running sums.
#include "frontends/builder/reduction.h"

#include "frontends/torch/ops/ops.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace partita::torch {

using nn::ReduceKind;

Val importReduce(NodeContext& n) {
  Emitter& e = n.e;
  Val x = n.tensor("self");
  const ElementType type = n.resultType();
  const Shape dims = n.axes("dim", x.rank());
  const bool keep = n.flag("keepdim", false);
  if (n.failed()) return {};
  if (n.op == "aten.amax") return e.reduce(ReduceKind::max, x, dims, keep);
  if (n.op == "aten.amin") return e.reduce(ReduceKind::min, x, dims, keep);
  if (n.op == "aten.any" || n.op == "aten.all") {
    x = e.cast(x, e.builder().getI1Type());
    return e.reduce(n.op == "aten.any" ? ReduceKind::max : ReduceKind::min, x,
                    dims, keep);
  }
  x = e.cast(x, type);
  if (n.op == "aten.sum") return e.reduce(ReduceKind::sum, x, dims, keep);
  if (n.op == "aten.prod") return e.reduce(ReduceKind::prod, x, dims, keep);
  if (n.op == "aten.mean") return e.mean(x, dims, keep);
  return builder::logSumExp(e, x, dims, keep);
}

// max and min of all elements, along a dimension, or of two tensors.
Val importMinMax(NodeContext& n) {
  Emitter& e = n.e;
  Val x = n.tensor("self");
  const bool is_max = n.op == "aten.max";
  if (n.failed()) return {};
  if (n.has("other")) {
    auto [a, b] = n.promoted("self", "other");
    if (n.failed()) return {};
    return is_max ? e.maximum(a, b) : e.minimum(a, b);
  }
  const ReduceKind kind = is_max ? ReduceKind::max : ReduceKind::min;
  if (!n.has("dim")) return e.reduce(kind, x, countUp(x.rank()), false);
  const int64_t axis = n.axis("dim", x.rank());
  const bool keep = n.flag("keepdim", false);
  if (n.failed()) return {};
  Val values = e.reduce(kind, x, {axis}, keep);
  Val index = builder::argExtreme(e, x, axis, is_max, /*last=*/false);
  n.out(1, e.reshape(index, values.shape()));
  return values;
}

// var and std, with the correction of the number of elements.
Val importVariance(NodeContext& n) {
  Emitter& e = n.e;
  Val x = n.tensor("self");
  const Shape dims = n.axes("dim", x.rank());
  const bool keep = n.flag("keepdim", false);
  const double correction = n.has("unbiased")
                                ? (n.flag("unbiased", true) ? 1 : 0)
                                : n.number("correction", 1);
  if (n.failed()) return {};
  int64_t count = 1;
  for (int64_t dim : dims) count *= x.dim(dim);
  Val centred = e.sub(x, e.mean(x, dims, true));
  Val sum = e.reduce(ReduceKind::sum, e.mul(centred, centred), dims, keep);
  Val variance =
      e.div(sum, std::max(static_cast<double>(count) - correction, 0.0));
  if (n.op == "aten.var") return variance;
  return e.unary<mlir::math::SqrtOp>(variance);
}

Val importArgMax(NodeContext& n) {
  Emitter& e = n.e;
  Val x = n.tensor("self");
  const bool keep = n.flag("keepdim", false);
  const bool is_flat = !n.has("dim");
  if (is_flat && !n.failed()) x = e.reshape(x, {x.size()});
  const int64_t axis = is_flat ? 0 : n.axis("dim", x.rank());
  if (n.failed()) return {};
  Val index = builder::argExtreme(e, x, axis, n.op == "aten.argmax",
                                  /*last=*/false);
  if (keep && is_flat) return n.unsupported("keepdim without a dimension");
  if (keep) return index;
  Shape shape(x.shape());
  shape.erase(shape.begin() + axis);
  return e.reshape(index, shape);
}

// topk and sort.
Val importTopK(NodeContext& n) {
  Val x = n.tensor("self");
  const int64_t axis = n.axis("dim", x.rank(), -1);
  if (n.failed()) return {};
  const bool is_sort = n.op == "aten.sort";
  const int64_t k = is_sort ? x.dim(axis) : n.integer("k");
  const bool largest =
      is_sort ? n.flag("descending", false) : n.flag("largest", true);
  if (n.failed()) return {};
  if (k < 1 || k > x.dim(axis))
    return n.error("expected k from 1 to the dimension's size");
  auto [values, indices] = builder::topK(n.e, x, k, axis, largest);
  n.out(1, indices);
  return values;
}

Val importCumulative(NodeContext& n) {
  Val x = n.tensor("self");
  const ElementType type = n.resultType();
  const int64_t axis = n.axis("dim", x.rank());
  if (n.failed()) return {};
  return builder::cumulate(
      n.e, n.op == "aten.cumsum" ? ReduceKind::sum : ReduceKind::prod,
      n.e.cast(x, type), axis);
}

Val importDiff(NodeContext& n) {
  Emitter& e = n.e;
  Val x = n.tensor("self");
  const int64_t axis = n.axis("dim", x.rank(), -1);
  llvm::SmallVector<Val> parts;
  if (n.has("prepend")) parts.push_back(n.tensor("prepend"));
  parts.push_back(x);
  if (n.has("append")) parts.push_back(n.tensor("append"));
  if (n.failed()) return {};
  if (n.integer("n", 1) != 1) return n.unsupported("n other than 1");
  x = e.concat(parts, axis);
  const int64_t size = x.dim(axis);
  if (size < 1) return x;
  Val next = e.sliceDim(x, axis, 1, size - 1),
      previous = e.sliceDim(x, axis, 0, size - 1);
  return x.isBool() ? e.bitXor(next, previous) : e.sub(next, previous);
}

// Counts of equal intervals from min to max, which belongs to the last.
Val importHistogram(NodeContext& n) {
  Emitter& e = n.e;
  Val x = n.tensor("self");
  const int64_t bins = n.integer("bins", 100);
  const double low = n.number("min", 0), high = n.number("max", 0);
  if (n.failed()) return {};
  if (low == high) return n.unsupported("a range that the data give");
  if (!(low < high) || bins < 1 || bins > (int64_t{1} << 20))
    return n.error("expected min below max, and up to 2^20 bins");
  const ElementType type = x.elementType();
  if (!x.isFloat()) x = e.cast(x, e.f32());
  x = e.reshape(x, {x.size(), 1});
  Val place =
      e.div(e.mul(e.sub(x, low), static_cast<double>(bins)), high - low);
  place = e.unary<mlir::math::FloorOp>(place);
  place = e.minimum(place, static_cast<double>(bins - 1));
  // A number above max is in no interval; one below min has a negative place.
  place = e.select(e.compare(Compare::le, x, high), place, e.splatLike(-1, x));
  const Shape shape = {x.dim(0), bins};
  Val is_in = e.compare(Compare::eq, e.broadcast(place, shape),
                        e.iota(shape, 1, x.element()));
  return e.reduce(ReduceKind::sum, e.cast(is_in, type), {0}, false);
}

}  // namespace partita::torch
