// Losses: negative log likelihood and softmax cross-entropy, over classes in
// dimension 1.
#include "frontends/onnx/ops/ops.h"

namespace partita::onnx {
namespace {

using nn::ReduceKind;

// Moves classes last: [N, C, d1, ...] to [N, d1, ..., C].
Val classesLast(Emitter& e, Val x) {
  Shape perm = countUp(x.rank());
  perm.erase(perm.begin() + 1);
  perm.push_back(1);
  return e.transpose(x, perm);
}

// Weights the losses of all positions and applies the reduction attribute.
LogicalResult finishLoss(NodeContext& n, Val losses, Val targets,
                         unsigned weight_input) {
  Emitter& e = n.e;
  bool has_ignored = n.hasAttr("ignore_index");
  Val counted, weights;
  if (has_ignored) {
    counted = e.compare(Compare::ne, targets,
                        e.ints({n.attrInt("ignore_index", 0)}, {}));
    losses = e.select(counted, losses, e.splatLike(0, losses));
  }
  if (n.has(weight_input)) {
    Shape with_one(targets.shape());
    with_one.push_back(1);
    weights = e.gather(n.in(weight_input), e.reshape(targets, with_one), {0});
    if (has_ignored)
      weights = e.select(counted, weights, e.splatLike(0, weights));
    losses = e.mul(losses, weights);
  }
  std::string reduction = n.attrString("reduction", "mean");
  if (reduction == "none") return n.result(losses);
  Shape all = countUp(losses.rank());
  Val sum = e.reduce(ReduceKind::sum, losses, all, false);
  if (reduction == "sum") return n.result(sum);
  if (reduction != "mean")
    return n.error("expected reduction none, sum or mean");
  if (!weights && !has_ignored)
    return n.result(e.div(sum, static_cast<double>(losses.size())));
  Val shares = weights ? weights : e.cast(counted, losses.elementType());
  return n.result(e.div(sum, e.reduce(ReduceKind::sum, shares, all, false)));
}

LogicalResult checkShapes(NodeContext& n, Val scores, Val targets) {
  Shape expected(scores.shape());
  if (expected.size() < 2) return n.error("expected scores of rank 2 or more");
  expected.erase(expected.begin() + 1);
  if (Dims(expected) != targets.shape() || targets.isFloat()) {
    return n.error("expected integer targets of shape " + toString(expected) +
                   ", found " + toString(targets.shape()));
  }
  return success();
}

// Returns -log_probabilities at the targets.
Val pick(Emitter& e, Val log_probabilities, Val targets) {
  Val last = classesLast(e, log_probabilities);
  Shape with_one(targets.shape()), flat = {targets.size(), 1};
  Val rows = e.reshape(last, {targets.size(), last.shape().back()});
  Val picked =
      e.gather(rows, e.reshape(targets, {targets.size(), 1, 1}), {1}, 1);
  return e.neg(e.reshape(picked, targets.shape()));
}

}  // namespace

LogicalResult importNegativeLogLikelihood(NodeContext& n) {
  Val log_probabilities = n.in(0), targets = n.in(1);
  if (failed(checkShapes(n, log_probabilities, targets))) return failure();
  targets = n.e.cast(targets, n.e.i64());
  return finishLoss(n, pick(n.e, log_probabilities, targets), targets, 2);
}

LogicalResult importSoftmaxCrossEntropy(NodeContext& n) {
  Emitter& e = n.e;
  Val scores = n.in(0), targets = n.in(1);
  if (failed(checkShapes(n, scores, targets))) return failure();
  targets = e.cast(targets, e.i64());
  if (n.wants(1)) n.out(1, e.softmax(scores, 1, /*log=*/true));
  mlir::Builder& builder = e.builder();
  Val losses = {e.create<nn::CrossEntropyOp>(
      e.tensor(targets.shape(), e.f32()), classesLast(e, scores).value,
      targets.value, builder.getI64IntegerAttr(n.attrInt("ignore_index", -100)),
      builder.getF64FloatAttr(0))};
  return finishLoss(n, e.cast(losses, scores.elementType()), targets, 2);
}

}  // namespace partita::onnx
