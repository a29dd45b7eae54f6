// Reductions, cumulative sums, argmax and argmin.
#include "frontends/builder/reduction.h"

#include "frontends/onnx/ops/ops.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace partita::onnx {

namespace math = mlir::math;

namespace {

using nn::ReduceKind;

// The axes are an input since opset 18 (ReduceSum: 13), an attribute before.
FailureOr<Shape> reducedAxes(NodeContext& n, Val x) {
  FailureOr<Shape> listed = n.attrInts("axes");
  if (n.has(1)) listed = n.constInts(1);
  if (failed(listed)) return failure();
  if (listed->empty())
    return n.attrInt("noop_with_empty_axes", 0) ? Shape() : countUp(x.rank());
  return n.axes(*listed, x.rank());
}

Val sumOf(Emitter& e, Val x, Dims dims, bool keep) {
  return e.reduce(ReduceKind::sum, x, dims, keep);
}

}  // namespace

LogicalResult importReduce(NodeContext& n) {
  Val x = n.in(0);
  bool keep = n.attrInt("keepdims", 1);
  auto dims = reducedAxes(n, x);
  if (failed(dims)) return failure();
  Emitter& e = n.e;
  llvm::StringRef op = n.op();
  if (op == "ReduceSum") return n.result(sumOf(e, x, *dims, keep));
  if (op == "ReduceProd")
    return n.result(e.reduce(ReduceKind::prod, x, *dims, keep));
  if (op == "ReduceMax")
    return n.result(e.reduce(ReduceKind::max, x, *dims, keep));
  if (op == "ReduceMin")
    return n.result(e.reduce(ReduceKind::min, x, *dims, keep));
  if (op == "ReduceMean") return n.result(e.mean(x, *dims, keep));
  if (op == "ReduceL1") return n.result(sumOf(e, e.abs(x), *dims, keep));
  if (op == "ReduceSumSquare")
    return n.result(sumOf(e, e.mul(x, x), *dims, keep));
  if (op == "ReduceL2")
    return n.result(e.unary<math::SqrtOp>(sumOf(e, e.mul(x, x), *dims, keep)));
  if (op == "ReduceLogSum")
    return n.result(e.unary<math::LogOp>(sumOf(e, x, *dims, keep)));
  if (!x.isFloat()) return n.unsupported("of integers");
  return n.result(builder::logSumExp(e, x, *dims, keep));
}

LogicalResult importArgMax(NodeContext& n) {
  Val x = n.in(0);
  auto axis = n.axis(n.attrInt("axis", 0), x.rank());
  if (failed(axis)) return failure();
  Val index = builder::argExtreme(n.e, x, *axis, n.op() == "ArgMax",
                                  n.attrInt("select_last_index", 0));
  if (n.attrInt("keepdims", 1)) return n.result(index);
  Shape shape(x.shape());
  shape.erase(shape.begin() + *axis);
  return n.result(n.e.reshape(index, shape));
}

LogicalResult importHardmax(NodeContext& n) {
  Val x = n.in(0);
  auto axis = n.axis(n.attrInt("axis", n.opset < 13 ? 1 : -1), x.rank());
  if (failed(axis)) return failure();
  Val rows = x;
  if (n.opset < 13)
    rows = n.e.reshape(x, {product(x.shape().take_front(*axis)),
                           product(x.shape().drop_front(*axis))});
  int64_t dim = n.opset < 13 ? 1 : *axis;
  Val first =
      builder::argExtreme(n.e, rows, dim, /*is_max=*/true, /*last=*/false);
  Val hit =
      n.e.compare(Compare::eq, n.e.iota(rows.shape(), dim, n.e.i64()), first);
  return n.result(n.e.reshape(n.e.cast(hit, x.elementType()), x.shape()));
}

LogicalResult importTopK(NodeContext& n) {
  Val x = n.in(0);
  auto axis = n.axis(n.attrInt("axis", -1), x.rank());
  FailureOr<Shape> k = Shape{n.attrInt("k", 0)};
  if (n.opset >= 10) {
    if (!n.has(1)) return n.error("expected k");
    k = n.constInts(1);
  }
  if (failed(axis) || failed(k)) return failure();
  if (x.is_unsigned) return n.unsupported("of unsigned integers");
  if (k->size() != 1 || (*k)[0] < 1 || (*k)[0] > x.dim(*axis))
    return n.error("expected k from 1 to the axis's size");
  auto [values, indices] =
      builder::topK(n.e, x, (*k)[0], *axis, n.attrInt("largest", 1) != 0);
  n.out(0, values);
  n.out(1, indices);
  return success();
}

LogicalResult importCumulative(NodeContext& n) {
  Val x = n.in(0);
  auto given = n.constInts(1);
  if (failed(given)) return failure();
  if (given->size() != 1) return n.error("expected a scalar axis");
  auto axis = n.axis((*given)[0], x.rank());
  if (failed(axis)) return failure();
  auto kind = n.op() == "CumSum" ? ReduceKind::sum : ReduceKind::prod;
  return n.result(builder::cumulate(n.e, kind, x, *axis,
                                    n.attrInt("exclusive", 0) != 0,
                                    n.attrInt("reverse", 0) != 0));
}

}  // namespace partita::onnx
