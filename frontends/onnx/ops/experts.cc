// onnxruntime's mixture of experts (domain com.microsoft).
#include "frontends/builder/experts.h"

#include <cmath>
#include <tuple>

#include "frontends/builder/routing.h"
#include "frontends/onnx/ops/ops.h"
#include "llvm/ADT/StringSwitch.h"

namespace partita::onnx {
namespace {

// Matrices or biases of products: rows first, first + step, ... of dimension 1.
Val everyOther(Emitter& e, Val x, int64_t first, int64_t step) {
  return e.sliceDim(x, 1, first, x.dim(1) / 2, step);
}

}  // namespace

// `router_probs` are scores before the softmax. fc1 is the activated product,
// fc3, if there is one, the product that multiplies it. SwiGLU with
// swiglu_fusion has both in fc1: in turns (1) or one after the other (2).
LogicalResult importMoe(NodeContext& n) {
  if (!n.has(4)) return n.error("expected input 4, fc2_experts_weights");
  const Val x = n.in(0), scores = n.in(1);
  builder::ExpertWeights w;
  const auto optional = [&](unsigned i) { return n.has(i) ? n.in(i) : Val(); };
  w.up = n.in(2);
  w.up_bias = optional(3);
  w.down = n.in(4);
  w.down_bias = optional(5);
  const Val fc3 = optional(6), fc3_bias = optional(7);
  const int64_t fusion = n.attrInt("swiglu_fusion", 0),
                top_k = n.attrInt("k", 1);
  const std::string name = n.attrString("activation_type", "relu");
  const bool is_swiglu = name == "swiglu";
  const auto activation =
      llvm::StringSwitch<std::optional<nn::ExpertActivation>>(name)
          .Case("relu", nn::ExpertActivation::relu)
          // onnxruntime's kernels compute the approximation with tanh.
          .Case("gelu", nn::ExpertActivation::gelu_tanh)
          .Cases({"silu", "swiglu"}, nn::ExpertActivation::silu)
          .Default(std::nullopt);
  if (!activation) return n.unsupported("activation_type=" + name);
  if (n.attrInt("use_sparse_mixer", 0) != 0)
    return n.unsupported("use_sparse_mixer");
  if (is_swiglu && (n.attrFloat("activation_alpha", 1) != 1 ||
                    n.attrFloat("activation_beta", 0) != 0))
    return n.unsupported("swiglu with activation_alpha or activation_beta");
  if (is_swiglu && std::isfinite(n.attrFloat("swiglu_limit", INFINITY)))
    return n.unsupported("swiglu_limit");
  if (x.rank() < 2 || scores.rank() != 2 ||
      scores.dim(0) * x.dim(x.rank() - 1) != x.size())
    return n.error(
        "expected router_probs [rows, experts] for each row of the "
        "input, found " +
        toString(scores.shape()) + " and " + toString(x.shape()));
  if (top_k < 1 || top_k > scores.dim(1))
    return n.error("expected k from 1 to the number of experts, " +
                   llvm::Twine(scores.dim(1)) + ", found " +
                   llvm::Twine(top_k));
  if (w.up.rank() != 3 || w.down.rank() != 3)
    return n.error("expected weights [experts, out, in], found " +
                   toString(w.up.shape()) + " and " + toString(w.down.shape()));
  if (fc3 && fc3.rank() != 3)
    return n.error("expected fc3_experts_weights [experts, out, in], found " +
                   toString(fc3.shape()));
  if (scores.dim(1) != w.up.dim(0))
    return n.error("expected router_probs with " + llvm::Twine(w.up.dim(0)) +
                   " experts, the first size of fc1_experts_weights, found " +
                   llvm::Twine(scores.dim(1)));
  if (fc3_bias && !fc3)
    return n.error(
        "expected fc3_experts_weights with fc3_experts_bias, found none");
  for (const auto& [number, bias, matrices] :
       {std::make_tuple(1, w.up_bias, w.up),
        std::make_tuple(2, w.down_bias, w.down),
        std::make_tuple(3, fc3_bias, fc3)})
    if (bias && bias.shape() != matrices.shape().drop_back())
      return n.error("expected fc" + llvm::Twine(number) +
                     "_experts_bias [experts, out], of shape " +
                     toString(matrices.shape().drop_back()) + ", found " +
                     toString(bias.shape()));
  if (is_swiglu && fusion != 0) {
    if (fc3 || fusion > 2 || fusion < 0 || w.up.dim(1) % 2 != 0)
      return n.error(
          "expected swiglu_fusion 1 or 2 to have an even number of outputs in "
          "fc1_experts_weights, and no fc3_experts_weights");
    const int64_t step = fusion == 1 ? 2 : 1,
                  second = fusion == 1 ? 1 : w.up.dim(1) / 2;
    const Val both = w.up, both_bias = w.up_bias;
    w.gate = everyOther(n.e, both, 0, step);
    w.up = everyOther(n.e, both, second, step);
    if (both_bias) {
      w.gate_bias = everyOther(n.e, both_bias, 0, step);
      w.up_bias = everyOther(n.e, both_bias, second, step);
    }
  } else if (fc3) {
    w.gate = w.up;
    w.gate_bias = w.up_bias;
    w.up = fc3;
    w.up_bias = fc3_bias;
  } else if (is_swiglu) {
    return n.error("expected fc3_experts_weights, or swiglu_fusion 1 or 2");
  }
  builder::RoutingOptions options;
  options.top_k = top_k;
  options.is_normalised = n.attrInt("normalize_routing_weights", 0) != 0;
  const builder::Routing routing = builder::route(n.e, scores, {}, options);
  const int64_t rows = scores.dim(0);
  const Val flat = n.e.reshape(x, {rows, x.dim(x.rank() - 1)});
  return n.result(n.e.reshape(
      builder::experts(n.e, flat, routing.ids, routing.weights, w, *activation),
      x.shape()));
}

}  // namespace partita::onnx
