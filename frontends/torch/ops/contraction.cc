// Linear layers, matrix products and attention.
#include <cmath>

#include "frontends/builder/activation.h"
#include "frontends/builder/attention.h"
#include "frontends/builder/einsum.h"
#include "frontends/torch/ops/ops.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::torch {
namespace {

// A tensor of rank 3 or 4 as [batch, heads, length, size].
Val withHeads(Emitter& e, Val x) {
  return x.rank() == 4 ? x : e.reshape(x, {x.dim(0), 1, x.dim(1), x.dim(2)});
}

}  // namespace

Val importLinear(NodeContext& n) {
  Val x = n.tensor("input"), weight = n.tensor("weight"),
      bias = n.optionalTensor("bias");
  if (n.failed()) return {};
  if (x.rank() == 0 || weight.rank() != 2)
    return n.error("expected an input with dimensions and a matrix of weights");
  Val y = n.e.dot(x, weight, {}, {}, {x.rank() - 1}, {1});
  return bias && !n.failed() ? n.e.add(y, bias) : y;
}

Val importMatmul(NodeContext& n) {
  const bool is_mm = n.has("mat2");
  Val a = n.tensor("self"), b = n.tensor(is_mm ? "mat2" : "other");
  return n.failed() ? Val() : n.e.matmul(a, b);
}

// beta * self + alpha * product.
Val importAddmm(NodeContext& n) {
  const bool is_batched = n.op == "aten.baddbmm";
  Val added = n.tensor("self"), a = n.tensor(is_batched ? "batch1" : "mat1"),
      b = n.tensor(is_batched ? "batch2" : "mat2");
  const double alpha = n.number("alpha", 1), beta = n.number("beta", 1);
  if (n.failed()) return {};
  const int64_t rank = is_batched ? 3 : 2;
  if (a.rank() != rank || b.rank() != rank)
    return n.error("expected factors of rank " + llvm::Twine(rank));
  Val product = n.e.matmul(a, b);
  if (alpha != 1) product = n.e.mul(product, alpha);
  if (beta == 0) return product;
  return n.e.add(product, beta == 1 ? added : n.e.mul(added, beta));
}

Val importEinsum(NodeContext& n) {
  llvm::SmallVector<Val> inputs = n.tensors("tensors");
  const std::string equation = n.text("equation", "");
  const ElementType type = n.resultType();
  if (n.failed()) return {};
  for (Val& input : inputs) {
    if (!input) return n.error("expected tensors");
    input = n.e.cast(input, type);
  }
  if (inputs.empty()) return n.error("expected tensors");
  return builder::einsum(n.e, equation, inputs);
}

Val importAttention(NodeContext& n) {
  Emitter& e = n.e;
  Val q = n.tensor("query"), k = n.tensor("key"), v = n.tensor("value"),
      mask = n.optionalTensor("attn_mask");
  const double ratio = n.number("dropout_p", 0);
  const bool is_causal = n.flag("is_causal", false);
  if (n.failed()) return {};
  const int64_t rank = q.rank();
  if ((rank != 3 && rank != 4) || k.rank() != rank || v.rank() != rank ||
      (mask && mask.rank() > rank))
    return n.unsupported("other ranks than 3 and 4");
  const double scale =
      n.number("scale", 1 / std::sqrt(static_cast<double>(q.dim(rank - 1))));
  builder::AttentionInputs inputs;
  inputs.q = withHeads(e, q);
  inputs.k = withHeads(e, k);
  inputs.v = withHeads(e, v);
  inputs.scale = scale;
  if (is_causal) inputs.causal_offset = 0;
  if (mask) {
    Val bias = mask.isBool() ? builder::biasOf(e, mask, q.element())
                             : e.cast(mask, q.elementType());
    Shape shape(bias.shape());
    // Without heads, a mask of rank 3 has its batch first.
    if (rank == 3 && bias.rank() == 3) shape.insert(shape.begin() + 1, 1);
    while (shape.size() < 4) shape.insert(shape.begin(), 1);
    inputs.bias = e.reshape(bias, shape);
  }
  Val y;
  if (ratio == 0) {
    y = builder::attend(e, inputs);
  } else if (!(ratio > 0 && ratio < 1)) {
    return n.error("expected a probability from 0 to below 1, found " +
                   std::to_string(ratio));
  } else {
    Val weights = builder::attentionScores(e, inputs, 3);
    weights = builder::dropout(e, weights, ratio, n.nextSeed());
    y = e.matmul(weights, builder::repeatHeads(e, inputs.v, inputs.q.dim(1)));
  }
  if (rank == 4 || n.failed()) return y;
  return e.reshape(y, {y.dim(0), y.dim(2), y.dim(3)});
}

}  // namespace partita::torch
