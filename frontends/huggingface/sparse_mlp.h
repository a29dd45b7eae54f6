// MLPs of experts behind a router.
#ifndef PARTITA_FRONTENDS_HUGGINGFACE_SPARSE_MLP_H_
#define PARTITA_FRONTENDS_HUGGINGFACE_SPARSE_MLP_H_

#include <string>

#include "frontends/builder/routing.h"
#include "frontends/huggingface/builder.h"

namespace partita::huggingface {

// The activations of experts, by their names in configs.
llvm::ArrayRef<StringRef> expertActivationNames();

struct ExpertsConfig {
  int64_t count = 1;  // experts
  int64_t inner = 1;
  std::string activation;
  builder::RoutingOptions routing;
  Init up = Init::normal(), down = Init::normal();
  // Names of weights within a layer. `*` stands for an expert; files have a
  // matrix for each.
  std::string router;                         // [count, width]
  std::string correction;                     // [count], or empty
  std::string gate_name, up_name, down_name;  // gate_name may be empty
};

// Adds a complaint unless there are as many experts as a row chooses. The keys
// name both numbers; a wrong one has its complaint already.
void checkChoice(Config& config, const char* count_key, const char* chosen_key,
                 const ExpertsConfig& experts);
// Complains about what routers do in training only, and we do not support:
// losses that balance experts, and noise on their inputs.
void refuseRouterTraining(Config& config, bool training);

// The weighted sum of the experts that the router chooses for each row of
// [B, L, width].
Value sparseMlp(Builder& b, Value x, const ExpertsConfig& experts);

}  // namespace partita::huggingface

#endif  // PARTITA_FRONTENDS_HUGGINGFACE_SPARSE_MLP_H_
