// Normalisations and softmax.
#include "frontends/builder/normalisation.h"

#include "frontends/onnx/ops/ops.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace partita::onnx {

namespace math = mlir::math;

namespace {

using builder::layerNorm;
using builder::perChannel;
using nn::ReduceKind;

// Before opset 13, softmax and its relatives treated all dimensions from the
// axis on as one.
LogicalResult softmax(NodeContext& n, bool log) {
  Val x = n.in(0);
  if (!x.isFloat()) return n.error("expected floats");
  if (x.rank() == 0) return n.unsupported("rank 0");
  auto axis = n.axis(n.attrInt("axis", n.opset < 13 ? 1 : -1),
                     x.rank() + (n.opset < 13 && x.rank() == 1 ? 1 : 0));
  if (failed(axis)) return failure();
  if (n.opset >= 13 || *axis == x.rank() - 1)
    return n.result(n.e.softmax(x, *axis, log));
  Shape rows = {product(x.shape().take_front(*axis)),
                product(x.shape().drop_front(*axis))};
  return n.result(
      n.e.reshape(n.e.softmax(n.e.reshape(x, rows), 1, log), x.shape()));
}

}  // namespace

LogicalResult importSoftmax(NodeContext& n) {
  return softmax(n, n.op() == "LogSoftmax");
}

LogicalResult importLayerNormalization(NodeContext& n) {
  Val x = n.in(0), scale = n.in(1);
  auto axis = n.axis(n.attrInt("axis", -1), x.rank());
  if (failed(axis)) return failure();
  Emitter& e = n.e;
  double epsilon = n.attrFloat("epsilon", 1e-5f);
  Dims normalised = x.shape().drop_front(*axis);
  Val full_scale = e.cast(e.broadcast(scale, normalised), x.elementType());
  Val full_bias =
      n.has(2) ? e.cast(e.broadcast(n.in(2), normalised), x.elementType())
               : Val();
  n.out(0, layerNorm(e, x, full_scale, full_bias, *axis, epsilon));
  if (!n.wants(1) && !n.wants(2)) return success();
  Shape dims;
  for (int64_t i = *axis; i < x.rank(); ++i) dims.push_back(i);
  Val wide = x.element().isF64() ? x : e.cast(x, e.f32());
  Val mean = e.mean(wide, dims, true);
  Val centred = e.sub(wide, mean);
  Val variance = e.mean(e.mul(centred, centred), dims, true);
  n.out(1, mean);
  n.out(2, e.div(e.splatLike(1, variance),
                 e.unary<math::SqrtOp>(e.add(variance, epsilon))));
  return success();
}

LogicalResult importRmsNormalization(NodeContext& n) {
  Val x = n.in(0), scale = n.in(1);
  auto axis = n.axis(n.attrInt("axis", -1), x.rank());
  if (failed(axis)) return failure();
  Val full = n.e.cast(n.e.broadcast(scale, x.shape().drop_front(*axis)),
                      x.elementType());
  Val y = builder::rmsNorm(n.e, x, full, *axis, n.attrFloat("epsilon", 1e-5f));
  return n.result(
      scale.element() == x.element() ? y : n.e.cast(y, scale.elementType()));
}

LogicalResult importBatchNormalization(NodeContext& n) {
  Val x = n.in(0);
  if (x.rank() < 2) return n.error("expected an input of rank 2 or more");
  if (n.opset < 9 && n.attrInt("spatial", 1) == 0)
    return n.unsupported("spatial=0");
  llvm::SmallVector<Val> operands;
  for (unsigned i = 1; i < 5; ++i) {
    if (n.in(i).rank() != 1 || n.in(i).dim(0) != x.dim(1))
      return n.error("expected vectors with one entry per channel");
    operands.push_back(n.e.cast(n.in(i), x.elementType()));
  }
  bool is_training = n.opset >= 14 ? n.attrInt("training_mode", 0) != 0
                                   : n.node.outputs.size() > 1;
  if (n.opset < 14 && is_training)
    return n.unsupported("training before opset 14");
  // ONNX's momentum is the weight of the old value. Its variance is the
  // population variance.
  builder::BatchNorm norm{operands[0], operands[1], operands[2], operands[3]};
  norm.momentum = 1 - n.attrFloat("momentum", 0.9f);
  norm.epsilon = n.attrFloat("epsilon", 1e-5f);
  norm.training = is_training;
  auto results = builder::batchNorm(n.e, x, norm);
  for (auto [i, value] : llvm::enumerate(results)) {
    n.out(i, i == 0 ? value : n.e.cast(value, n.in(i + 2).elementType()));
  }
  return success();
}

LogicalResult importInstanceNormalization(NodeContext& n) {
  Val x = n.in(0);
  if (x.rank() < 3) return n.error("expected an input of rank 3 or more");
  Val y = layerNorm(n.e, x, {}, {}, 2, n.attrFloat("epsilon", 1e-5f));
  y = n.e.mul(y, perChannel(n.e, n.in(1), x.rank()));
  return n.result(n.e.add(y, perChannel(n.e, n.in(2), x.rank())));
}

LogicalResult importGroupNormalization(NodeContext& n) {
  Val x = n.in(0), scale = n.in(1), bias = n.in(2);
  int64_t groups = n.attrInt("num_groups", 0);
  if (x.rank() < 2 || groups < 1 || x.dim(1) % groups != 0)
    return n.error("expected num_groups to divide the channels");
  Emitter& e = n.e;
  Val y = builder::normaliseGroups(e, x, groups, n.attrFloat("epsilon", 1e-5f));
  if (n.opset < 21) {
    // Scale and bias have one entry per group.
    y = e.reshape(
        y, {x.dim(0), groups, product(x.shape().drop_front(1)) / groups});
    y = e.add(e.mul(y, e.reshape(scale, {groups, 1})),
              e.reshape(bias, {groups, 1}));
    return n.result(e.reshape(y, x.shape()));
  }
  y = e.mul(y, perChannel(e, scale, x.rank()));
  return n.result(e.add(y, perChannel(e, bias, x.rank())));
}

LogicalResult importLpNormalization(NodeContext& n) {
  Val x = n.in(0);
  auto axis = n.axis(n.attrInt("axis", -1), x.rank());
  if (failed(axis)) return failure();
  int64_t p = n.attrInt("p", 2);
  if (p != 1 && p != 2) return n.error("expected p to be 1 or 2");
  Val powers = p == 1 ? n.e.abs(x) : n.e.mul(x, x);
  Val norm = n.e.reduce(ReduceKind::sum, powers, {*axis}, true);
  if (p == 2) norm = n.e.unary<math::SqrtOp>(norm);
  // A zero vector stays zero.
  Val divisor = n.e.select(n.e.compare(Compare::eq, norm, 0.0),
                           n.e.splatLike(1, norm), norm);
  return n.result(n.e.div(x, divisor));
}

LogicalResult importMeanVarianceNormalization(NodeContext& n) {
  Val x = n.in(0);
  auto axes = n.axes(n.attrInts("axes", {0, 2, 3}), x.rank());
  if (failed(axes)) return failure();
  Val centred = n.e.sub(x, n.e.mean(x, *axes, true));
  Val deviation =
      n.e.unary<math::SqrtOp>(n.e.mean(n.e.mul(centred, centred), *axes, true));
  return n.result(n.e.div(centred, n.e.add(deviation, 1e-9)));
}

// Divides by a power of the sum of squares over adjacent channels.
LogicalResult importLrn(NodeContext& n) {
  Val x = n.in(0);
  if (x.rank() < 3) return n.error("expected an input of rank 3 or more");
  int64_t size = n.attrInt("size", 0);
  if (size < 1) return n.error("expected a positive size");
  double alpha = n.attrFloat("alpha", 1e-4f), beta = n.attrFloat("beta", 0.75),
         bias = n.attrFloat("bias", 1);
  Shape window(x.rank(), 1), ones(x.rank(), 1), low(x.rank(), 0),
      high(x.rank(), 0);
  window[1] = size;
  low[1] = (size - 1) / 2;
  high[1] = size - 1 - low[1];
  Val sum = n.e.reduceWindow(ReduceKind::sum, n.e.mul(x, x), window, ones, ones,
                             low, high);
  Val base = n.e.add(n.e.mul(sum, alpha / static_cast<double>(size)), bias);
  return n.result(
      n.e.div(x, n.e.binary<math::PowFOp>(base, n.e.splatLike(beta, base))));
}

}  // namespace partita::onnx
