// Scores, choices and weights (Shazeer et al., 2017); groups and a correction
// of the choice (DeepSeek-AI, 2024); capacities (Fedus et al., 2021; Lepikhin
// et al., 2020; Riquelme et al., 2021).
#include "frontends/builder/routing.h"

#include <limits>

#include "frontends/builder/indexing.h"
#include "frontends/builder/reduction.h"

namespace partita::builder {
namespace {

using nn::ReduceKind;

// Replaces the scores of experts outside the best groups by -inf, as
// transformers 5 does: a row never leaves its groups, though a correction may
// make scores in them negative.
Val closeGroups(Emitter& e, Val scores, const RoutingOptions& options) {
  const int64_t last = scores.rank() - 1, experts = scores.dim(last);
  Shape grouped(scores.shape());
  grouped.back() = options.groups;
  grouped.push_back(experts / options.groups);
  const Val in_groups = e.reshape(scores, grouped);
  const Val sums = e.reduce(
      ReduceKind::sum, topK(e, in_groups, 2, last + 1, /*largest=*/true).first,
      {last + 1}, /*keep_dims=*/false);
  const Val best =
      topK(e, sums, options.open_groups, last, /*largest=*/true).second;
  // [..., open_groups, groups]: the groups that are chosen.
  Shape hits(best.shape());
  hits.push_back(options.groups);
  const Val is_chosen =
      e.compare(Compare::eq, withOne(e, best), e.iota(hits, last + 1, e.i64()));
  const Val is_open =
      e.compare(Compare::gt,
                e.reduce(ReduceKind::sum, e.cast(is_chosen, scores.element()),
                         {last}, /*keep_dims=*/false),
                0.5);
  Shape flags(is_open.shape());
  flags.push_back(1);
  const Val closed =
      e.splatLike(-std::numeric_limits<double>::infinity(), in_groups);
  return e.reshape(e.select(e.reshape(is_open, flags), in_groups, closed),
                   scores.shape());
}

// Sets the ids [..., rows, top_k] of choices beyond their expert's capacity to
// -1. Choices [..., top_k * rows] queue in order: all first ones, then all
// second ones.
Val dropInOrder(Emitter& e, Val ids, int64_t experts, int64_t capacity) {
  const int64_t last = ids.rank() - 1;
  Shape swap = countUp(ids.rank()), queue(ids.shape().drop_back(2));
  std::swap(swap[last - 1], swap[last]);
  const Val by_choice = e.transpose(ids, swap);
  queue.push_back(ids.dim(last) * ids.dim(last - 1));
  const Val queued = e.reshape(by_choice, queue);
  Shape shape = queue;
  shape.push_back(experts);
  // Integers, because counts of rows must be exact in a model of any precision.
  const Val chosen = e.cast(
      e.compare(Compare::eq, withOne(e, queued), e.iota(shape, last, e.i64())),
      e.builder().getI32Type());
  const Val count = cumulate(e, ReduceKind::sum, chosen, last - 1);
  const Val place = e.reduce(ReduceKind::sum, e.mul(count, chosen), {last},
                             /*keep_dims=*/false);
  const Val kept =
      e.select(e.compare(Compare::le, place, static_cast<double>(capacity)),
               queued, e.splatLike(-1, queued));
  return e.transpose(e.reshape(kept, by_choice.shape()), swap);
}

// The same, with rows queued by their `priorities` [..., rows]. A choice is
// dropped if at least `capacity` choices of its expert are before it.
Val dropByPriority(Emitter& e, Val ids, Val priorities, int64_t capacity) {
  const int64_t rank = ids.rank(), rows = ids.dim(rank - 2),
                top_k = ids.dim(rank - 1);
  // [..., rows, top_k, rows, top_k]: a choice, and another one.
  Shape pairs(ids.shape());
  pairs.append({rows, top_k});
  Shape own(ids.shape()), other(ids.shape().drop_back(2));
  own.append({1, 1});
  other.append({1, 1, rows, top_k});
  Shape own_row(ids.shape().drop_back(1)), other_row(other);
  own_row.append({1, 1, 1});
  other_row.back() = 1;
  const auto place = [&](int64_t dim) { return e.iota(pairs, dim, e.i64()); };
  const Val own_priority = e.reshape(priorities, own_row),
            other_priority = e.reshape(priorities, other_row);
  const Val is_before =
      e.bitOr(e.compare(Compare::gt, other_priority, own_priority),
              e.bitAnd(e.compare(Compare::eq, other_priority, own_priority),
                       e.compare(Compare::lt, place(rank), place(rank - 2))));
  const Val is_ahead =
      e.bitOr(e.compare(Compare::lt, place(rank + 1), place(rank - 1)),
              e.bitAnd(e.compare(Compare::eq, place(rank + 1), place(rank - 1)),
                       is_before));
  const Val is_same =
      e.compare(Compare::eq, e.reshape(ids, other), e.reshape(ids, own));
  const Val ahead =
      e.reduce(ReduceKind::sum,
               e.cast(e.bitAnd(is_same, is_ahead), e.builder().getI32Type()),
               {rank, rank + 1}, /*keep_dims=*/false);
  return e.select(e.compare(Compare::lt, ahead, static_cast<double>(capacity)),
                  ids, e.splatLike(-1, ids));
}

}  // namespace

Routing route(Emitter& e, Val logits, Val correction,
              const RoutingOptions& options) {
  const int64_t last = logits.rank() - 1, experts = logits.dim(last);
  const Val scores = options.scores == RoutingOptions::Scores::kSoftmax
                         ? e.softmax(logits, last)
                         : e.sigmoid(logits);
  Val choice = correction ? e.add(scores, correction) : scores;
  if (options.open_groups < options.groups)
    choice = closeGroups(e, choice, options);
  const Val ids = topK(e, choice, options.top_k, last, /*largest=*/true).second;
  // The weight of expert i is the score at i. A sum over all experts, unlike a
  // gather, is cheap to divide and to differentiate.
  Shape pairs(ids.shape());
  pairs.push_back(experts);
  Shape rows(scores.shape());
  rows.insert(rows.end() - 1, 1);
  const Val is_chosen =
      e.compare(Compare::eq, withOne(e, ids), e.iota(pairs, last + 1, e.i64()));
  const Val candidates = e.broadcast(e.reshape(scores, rows), pairs);
  Val weights =
      e.reduce(ReduceKind::sum,
               e.select(is_chosen, candidates, e.splatLike(0, candidates)),
               {last + 1}, /*keep_dims=*/false);
  if (options.is_normalised) {
    Val sum = e.reduce(ReduceKind::sum, weights, {last}, /*keep_dims=*/true);
    if (options.epsilon > 0) sum = e.add(sum, options.epsilon);
    weights = e.div(weights, sum);
  }
  if (options.scale != 1) weights = e.mul(weights, options.scale);
  Routing routing = {ids, ids, weights, scores};
  if (options.capacity && options.is_prioritised)
    routing.ids = dropByPriority(
        e, ids, e.reduce(ReduceKind::max, scores, {last}, /*keep_dims=*/false),
        *options.capacity);
  else if (options.capacity)
    routing.ids = dropInOrder(e, ids, experts, *options.capacity);
  return routing;
}

}  // namespace partita::builder
