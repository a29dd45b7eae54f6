// Routers of mixtures of experts: the experts that each row goes to, and their
// weights.
#ifndef PARTITA_FRONTENDS_BUILDER_ROUTING_H_
#define PARTITA_FRONTENDS_BUILDER_ROUTING_H_

#include <cstdint>
#include <optional>

#include "frontends/builder/emitter.h"

namespace partita::builder {

struct RoutingOptions {
  enum class Scores { kSoftmax, kSigmoid };
  Scores scores = Scores::kSoftmax;
  int64_t top_k = 1;  // experts per row
  // Experts are divided into `groups` equal groups of at least two, and a row
  // chooses among the `open_groups` best. The score of a group is the sum of
  // its two best experts.
  int64_t groups = 1, open_groups = 1;
  // Divides the weights of a row by their sum plus epsilon, then multiplies
  // them by `scale`.
  bool is_normalised = false;
  double epsilon = 0, scale = 1;
  // An expert takes `capacity` choices of the rows along the last dimension but
  // one, in the order of the rows. Second choices queue behind all first
  // choices, and so on (Lepikhin et al., 2020).
  std::optional<int64_t> capacity;
  // Rows queue by their best score instead, the highest first (Riquelme et al.,
  // 2021). Among equals the earlier row is first.
  bool is_prioritised = false;
};

// [..., top_k]: the experts in order of their scores (i64), the same with -1
// for choices beyond an expert's capacity, and the weights of their results.
// `scores` are those of all experts, without the correction.
struct Routing {
  Val choices, ids, weights, scores;
};

// Routes rows by their logits [..., experts]. `correction` [experts], or null,
// is added to the scores for the choice only.
Routing route(Emitter& e, Val logits, Val correction,
              const RoutingOptions& options);

}  // namespace partita::builder

#endif  // PARTITA_FRONTENDS_BUILDER_ROUTING_H_
