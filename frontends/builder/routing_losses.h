// Losses that keep routers balanced, and the statistics of rows that they need.
#ifndef PARTITA_FRONTENDS_BUILDER_ROUTING_LOSSES_H_
#define PARTITA_FRONTENDS_BUILDER_ROUTING_LOSSES_H_

#include "frontends/builder/emitter.h"
#include "frontends/builder/routing.h"

namespace partita::builder {

// What one router did with rows [groups, rows]: per group and expert, the
// number of choices (i64) and the sum of scores, both [groups, experts]; and
// the sum over all rows of log(sum(exp(logits)))^2, a scalar.
struct RouterStatistics {
  Val choices, scores, log_sums;
};

// `logits` are [groups, rows, experts] and `routing` is theirs. Rows where
// `kept` [groups, rows] (i64) is 0 do not count, except in `log_sums`. `kept`
// may be null.
RouterStatistics routerStatistics(Emitter& e, Val logits,
                                  const Routing& routing, Val kept);

// experts * the mean over groups of sum(c * s), where c and s are the choices
// and scores per expert as shares of `rows`, the number of rows of a group (f32
// scalar). Choices have no gradient (Fedus et al., 2021, equations 4 to 6).
Val balanceLoss(Emitter& e, Val choices, Val scores, Val rows);

// The squared coefficient of variation of the scores' sums over all groups, the
// importance of experts (Riquelme et al., 2021, appendix A).
Val importanceLoss(Emitter& e, Val scores);

}  // namespace partita::builder

#endif  // PARTITA_FRONTENDS_BUILDER_ROUTING_LOSSES_H_
