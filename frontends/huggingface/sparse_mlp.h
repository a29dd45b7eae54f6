// MLPs of experts behind a router.
#ifndef PARTITA_FRONTENDS_HUGGINGFACE_SPARSE_MLP_H_
#define PARTITA_FRONTENDS_HUGGINGFACE_SPARSE_MLP_H_

#include <string>

#include "frontends/builder/routing.h"
#include "frontends/builder/routing_losses.h"
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
  std::string up_bias, down_bias;             // may be empty
  // Rows of so many sequences form a group of one capacity.
  int64_t sequences_per_group = 1;
};

// Factors of the losses that keep routers balanced, which training adds to the
// model's loss. 0: no such loss.
struct RouterLosses {
  // Reads them if training shall use them (output_router_logits).
  static RouterLosses read(Config& config, bool training, bool has_log_sums);

  double balance = 0, log_sums = 0;

  bool areUsed() const { return balance != 0 || log_sums != 0; }
};

// Adds a complaint unless there are as many experts as a row chooses. The keys
// name both numbers; a wrong one has its complaint already.
void checkChoice(Config& config, const char* count_key, const char* chosen_key,
                 const ExpertsConfig& experts);
// Complains about noise on a router's input, which we do not support.
void refuseRouterNoise(Config& config, bool training);

// The weighted sum of the experts that the router chooses for each row of
// [B, L, width]. With `statistics`, appends the router's: choices [B, experts]
// (i64), scores [B, experts] and log_sums (builder::RouterStatistics). Rows
// where `kept` [B, L] is 0 do not count in them; it may be null.
Value sparseMlp(Builder& b, Value x, const ExpertsConfig& experts,
                ValueList* statistics = nullptr, Value kept = Value());

// Sums of what sparse layers of the same experts append to their results.
class RouterSums {
 public:
  // `results` are those of a layer, its own result first.
  void add(Builder& b, ValueRange results);
  bool isEmpty() const { return layers_ == 0; }
  int64_t layers() const { return layers_; }
  Value choices() const { return sums_[0]; }
  Value scores() const { return sums_[1]; }
  Value logSums() const { return sums_[2]; }

 private:
  int64_t layers_ = 0;
  ValueList sums_;
};

}  // namespace partita::huggingface

#endif  // PARTITA_FRONTENDS_HUGGINGFACE_SPARSE_MLP_H_
