// Sums over rows come first, so that a division of the batch or of the sequence
// reduces a few numbers per expert.
#include "frontends/builder/routing_losses.h"

#include "frontends/builder/indexing.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace partita::builder {

using nn::ReduceKind;

RouterStatistics routerStatistics(Emitter& e, Val logits,
                                  const Routing& routing, Val kept) {
  const int64_t experts = logits.dim(2);
  Shape pairs(routing.choices.shape());
  pairs.push_back(experts);
  // [groups, rows, top_k, experts]; integers, because counts must be exact.
  Val chosen = e.cast(e.compare(Compare::eq, withOne(e, routing.choices),
                                e.iota(pairs, 3, e.i64())),
                      e.i64());
  Val scores = routing.scores;
  if (kept) {
    const Val rows = withOne(e, kept);
    chosen = e.mul(chosen, withOne(e, rows));
    scores = e.mul(scores, e.cast(rows, scores.elementType()));
  }
  // log(sum(exp(x))) = highest + log(sum(exp(x - highest))). The gradient of
  // `highest` cancels, but it is computed.
  const Val highest =
      e.reduce(ReduceKind::max, logits, {2}, /*keep_dims=*/true);
  const Val sum = e.reduce(
      ReduceKind::sum, e.unary<mlir::math::ExpOp>(e.sub(logits, highest)), {2},
      /*keep_dims=*/true);
  const Val log_sum = e.add(highest, e.unary<mlir::math::LogOp>(sum));
  return {e.reduce(ReduceKind::sum, chosen, {1, 2}, /*keep_dims=*/false),
          e.reduce(ReduceKind::sum, scores, {1}, /*keep_dims=*/false),
          e.reduce(ReduceKind::sum, e.mul(log_sum, log_sum), {0, 1, 2},
                   /*keep_dims=*/false)};
}

Val balanceLoss(Emitter& e, Val choices, Val scores, Val rows) {
  const int64_t groups = scores.dim(0), experts = scores.dim(1);
  const Val products = e.mul(e.div(e.cast(choices, scores.elementType()), rows),
                             e.div(scores, rows));
  return e.mul(e.reduce(ReduceKind::sum, products, {0, 1}, /*keep_dims=*/false),
               static_cast<double>(experts) / static_cast<double>(groups));
}

Val importanceLoss(Emitter& e, Val scores) {
  const Val importance =
      e.reduce(ReduceKind::sum, scores, {0}, /*keep_dims=*/false);
  const Val mean = e.mean(importance, {0}, /*keep_dims=*/true);
  const Val difference = e.sub(importance, mean);
  const Val variance =
      e.mean(e.mul(difference, difference), {0}, /*keep_dims=*/false);
  const Val scale = e.reshape(mean, {});
  return e.div(variance, e.mul(scale, scale));
}

}  // namespace partita::builder
