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

void refuseRouterTraining(Config& config, bool training) {
  if (training && config.flag("output_router_logits", false))
    config.complain(
        "'output_router_logits': expected false for training, found true; the "
        "losses that balance routers are not supported");
  const double noise = config.number("router_jitter_noise", 0.0);
  if (training && noise != 0.0)
    config.complain("'router_jitter_noise': expected 0 for training, found " +
                    nlohmann::json(noise).dump() +
                    "; noise on a router's input is not supported");
}

Value sparseMlp(Builder& b, Value x, const ExpertsConfig& experts) {
  const int64_t width = b.shapeOf(x).back(), count = experts.count,
                inner = experts.inner;
  const Value router = b.weight(experts.router, {count, width}, Init::normal());
  Value correction;
  if (!experts.correction.empty())
    correction = b.weight(experts.correction, {count}, Init::zeros(), "buffer");
  const Value logits = b.project(x, router, Value());
  builder::ExpertWeights weights;
  if (!experts.gate_name.empty())
    weights.gate = {
        b.weight(experts.gate_name, {count, inner, width}, experts.up)};
  weights.up = {b.weight(experts.up_name, {count, inner, width}, experts.up)};
  weights.down = {
      b.weight(experts.down_name, {count, width, inner}, experts.down)};
  builder::Emitter e(b.ops());
  e.start(b.loc());
  const builder::Routing routing =
      builder::route(e, {logits}, {correction}, experts.routing);
  return builder::experts(e, {x}, routing.ids, routing.weights, weights,
                          activationOf(experts.activation))
      .value;
}

}  // namespace partita::huggingface
