// Gathers and scatters along one axis, mapped to nn.gather and nn.scatter.
#ifndef PARTITA_FRONTENDS_BUILDER_INDEXING_H_
#define PARTITA_FRONTENDS_BUILDER_INDEXING_H_

#include "frontends/builder/emitter.h"

namespace partita::builder {

// Adds a last dimension of size 1: index vectors of one component.
Val withOne(Emitter& e, Val x);

// Takes entries along `axis`; the indices' dimensions replace it. Negative
// indices count from the end. Constant, equally spaced indices make a slice.
Val take(Emitter& e, Val x, Val indices, int64_t axis);

// Result element i is x at i, with component `axis` replaced by indices[i].
// `indices` has x's rank.
Val gatherElements(Emitter& e, Val x, Val indices, int64_t axis);

// Sets or combines x at the positions that gatherElements reads.
Val scatterElements(Emitter& e, Val x, Val indices, Val updates, int64_t axis,
                    nn::ScatterKind kind);

}  // namespace partita::builder

#endif  // PARTITA_FRONTENDS_BUILDER_INDEXING_H_
