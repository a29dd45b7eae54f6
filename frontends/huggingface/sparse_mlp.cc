// Routes rows and sends them through nn.experts.
#include "frontends/huggingface/sparse_mlp.h"

#include "frontends/builder/experts.h"
#include "llvm/ADT/StringSwitch.h"

namespace partita::huggingface {
namespace {

nn::ExpertActivation activationOf(StringRef name) {
  return llvm::StringSwitch<nn::ExpertActivation>(name)
      .Case("relu", nn::ExpertActivation::relu)
      .Case("gelu", nn::ExpertActivation::gelu)
      .Cases({"silu", "swish"}, nn::ExpertActivation::silu)
      .Default(nn::ExpertActivation::gelu_tanh);
}

}  // namespace

llvm::ArrayRef<StringRef> expertActivationNames() {
  static constexpr StringRef names[] = {
      "relu",      "gelu", "gelu_new", "gelu_pytorch_tanh",
      "gelu_tanh", "silu", "swish"};
  return names;
}

void checkChoice(Config& config, const char* count_key, const char* chosen_key,
                 const ExpertsConfig& experts) {
  if (config.isWrong(count_key) || config.isWrong(chosen_key)) return;
  const builder::RoutingOptions& routing = experts.routing;
  const int64_t open = experts.count / routing.groups * routing.open_groups;
  if (routing.top_k > open)
    config.complain("'" + std::string(chosen_key) + "': expected at most " +
                    std::to_string(open) + ", the experts to choose from ('" +
                    count_key + "'), found " + std::to_string(routing.top_k));
}

RouterLosses RouterLosses::read(Config& config, bool training,
                                bool has_log_sums) {
  RouterLosses losses;
  const double balance = config.number("router_aux_loss_coef", 0.001),
               log_sums = has_log_sums
                              ? config.number("router_z_loss_coef", 0.001)
                              : 0.0;
  if (training && config.flag("output_router_logits", false))
    losses = {balance, log_sums};
  return losses;
}

void refuseRouterNoise(Config& config, bool training) {
  const double noise = config.number("router_jitter_noise", 0.0);
  if (training && noise != 0.0)
    config.complain("'router_jitter_noise': expected 0 for training, found " +
                    nlohmann::json(noise).dump() +
                    "; noise on a router's input is not supported");
}

Value sparseMlp(Builder& b, Value x, const ExpertsConfig& experts,
                ValueList* statistics, Value kept) {
  const int64_t width = b.shapeOf(x).back(), count = experts.count,
                inner = experts.inner;
  const Value router = b.weight(experts.router, {count, width}, Init::normal());
  Value correction;
  if (!experts.correction.empty())
    correction = b.weight(experts.correction, {count}, Init::zeros(), "buffer");
  Value logits = b.project(x, router, Value());
  builder::ExpertWeights weights;
  if (!experts.gate_name.empty())
    weights.gate = {
        b.weight(experts.gate_name, {count, inner, width}, experts.up)};
  weights.up = {b.weight(experts.up_name, {count, inner, width}, experts.up)};
  weights.down = {
      b.weight(experts.down_name, {count, width, inner}, experts.down)};
  if (!experts.up_bias.empty())
    weights.up_bias = {
        b.weight(experts.up_bias, {count, inner}, Init::zeros())};
  if (!experts.down_bias.empty())
    weights.down_bias = {
        b.weight(experts.down_bias, {count, width}, Init::zeros())};
  builder::Emitter e(b.ops());
  e.start(b.loc());
  const int64_t batch = b.shapeOf(x)[0], length = b.shapeOf(x)[1],
                group = experts.sequences_per_group;
  logits = b.reshape(logits, {batch / group, length * group, count});
  const builder::Routing routing =
      builder::route(e, {logits}, {correction}, experts.routing);
  if (statistics) {
    const builder::RouterStatistics found =
        builder::routerStatistics(e, {logits}, routing, {kept});
    statistics->append(
        {found.choices.value, found.scores.value, found.log_sums.value});
  }
  const auto perRow = [&](builder::Val chosen) {
    return e.reshape(chosen, {batch, length, experts.routing.top_k});
  };
  return builder::experts(e, {x}, perRow(routing.ids), perRow(routing.weights),
                          weights, activationOf(experts.activation))
      .value;
}

void RouterSums::add(Builder& b, ValueRange results) {
  if (results.size() != 4) return;
  ++layers_;
  if (sums_.empty()) {
    sums_.assign(results.begin() + 1, results.end());
    return;
  }
  sums_[0] = b.addIntegers(sums_[0], results[1]);
  for (int i : {1, 2}) sums_[i] = b.add(sums_[i], results[i + 1]);
}

}  // namespace partita::huggingface
