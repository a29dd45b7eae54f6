// Reductions beyond sums: positions of extremes, running sums, largest entries.
#ifndef PARTITA_FRONTENDS_BUILDER_REDUCTION_H_
#define PARTITA_FRONTENDS_BUILDER_REDUCTION_H_

#include <utility>

#include "frontends/builder/emitter.h"

namespace partita::builder {

// log(sum(exp(x))), shifted by the maximum to avoid overflow.
Val logSumExp(Emitter& e, Val x, Dims dims, bool keep_dims);

// The index (i64) of the maximum or minimum along `axis`, which stays with size
// 1; the last one if `last`.
Val argExtreme(Emitter& e, Val x, int64_t axis, bool is_max, bool last);

// The `k` largest or smallest elements along `axis`, in order, and their
// indices (i64).
std::pair<Val, Val> topK(Emitter& e, Val x, int64_t k, int64_t axis,
                         bool largest);

// Running sums or products along `axis`: a window that covers all previous (or,
// reversed, all later) elements. If exclusive, without the element itself.
Val cumulate(Emitter& e, nn::ReduceKind kind, Val x, int64_t axis,
             bool is_exclusive = false, bool is_reverse = false);

}  // namespace partita::builder

#endif  // PARTITA_FRONTENDS_BUILDER_REDUCTION_H_
