// Losses.
#include "frontends/torch/ops/ops.h"

namespace partita::torch {
namespace {

using nn::ReduceKind;

// at::Reduction.
enum : int64_t { kNone = 0, kMean = 1, kSum = 2 };

Val reduceLoss(NodeContext& n, Val losses, int64_t reduction) {
  if (reduction == kNone) return losses;
  const Shape all = countUp(losses.rank());
  return reduction == kSum ? n.e.reduce(ReduceKind::sum, losses, all, false)
                           : n.e.mean(losses, all, false);
}

}  // namespace

Val importCrossEntropy(NodeContext& n) {
  Emitter& e = n.e;
  Val scores = n.tensor("self"), targets = n.tensor("target");
  const int64_t reduction = n.integer("reduction", kMean),
                ignored = n.integer("ignore_index", -100);
  const double smoothing = n.number("label_smoothing", 0);
  if (n.failed()) return {};
  if (n.has("weight")) return n.unsupported("weights of classes");
  if (targets.isFloat()) return n.unsupported("probabilities as targets");
  // Classes last: [N, C, d1, ...] becomes [N, d1, ..., C].
  Shape perm = countUp(scores.rank());
  if (scores.rank() > 1) {
    perm.erase(perm.begin() + 1);
    perm.push_back(1);
  }
  Val rows = e.transpose(scores, perm);
  if (rows.rank() < 1 || rows.shape().drop_back() != targets.shape())
    return n.error(
        "expected targets of the scores' shape without classes, "
        "found " +
        toString(targets.shape()));
  targets = e.cast(targets, e.i64());
  Val losses = {e.create<nn::CrossEntropyOp>(
      e.tensor(targets.shape(), e.f32()), rows.value, targets.value,
      e.builder().getI64IntegerAttr(ignored),
      e.builder().getF64FloatAttr(smoothing))};
  losses = e.cast(losses, scores.elementType());
  if (reduction != kMean) return reduceLoss(n, losses, reduction);
  const Shape all = countUp(losses.rank());
  Val counted = e.cast(e.compare(Compare::ne, targets, e.ints({ignored}, {})),
                       losses.element());
  return e.div(e.reduce(ReduceKind::sum, losses, all, false),
               e.reduce(ReduceKind::sum, counted, all, false));
}

Val importMse(NodeContext& n) {
  auto [a, b] = n.promoted("self", "target");
  const int64_t reduction = n.integer("reduction", kMean);
  if (n.failed()) return {};
  Val difference = n.e.sub(a, b);
  if (n.op == "aten.l1_loss")
    return reduceLoss(n, n.e.abs(difference), reduction);
  return reduceLoss(n, n.e.mul(difference, difference), reduction);
}

}  // namespace partita::torch
