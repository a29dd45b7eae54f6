// Linear layers, matrix products and attention.
#include <cmath>

#include "frontends/builder/activation.h"
#include "frontends/builder/attention.h"
#include "frontends/builder/einsum.h"
#include "frontends/torch/ops/ops.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::torch {
namespace {

// A shape of rank 3 or more as [batch, heads, length, size]: dimensions between
// the first and the last two count as heads.
Shape withHeads(Dims shape) {
  return {shape.front(), product(shape.drop_front().drop_back(2)),
          shape[shape.size() - 2], shape.back()};
}

// The bias of scores for this mask, with the rank of withHeads.
Val biasWithHeads(Emitter& e, Val bias, Dims query) {
  Shape shape(bias.shape());
  while (shape.size() < query.size()) shape.insert(shape.begin(), 1);
  bias = e.reshape(bias, shape);
  // Merged dimensions are whole, or all 1.
  const Dims heads = Dims(shape).drop_front().drop_back(2);
  if (product(heads) != 1) {
    for (size_t i = 1; i + 2 < query.size(); ++i) shape[i] = query[i];
    bias = e.broadcast(bias, shape);
  }
  return e.reshape(bias, withHeads(shape));
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

// Rows from offs[e - 1] to offs[e] by matrix e; later rows give 0.
Val importGroupedMatmul(NodeContext& n) {
  Emitter& e = n.e;
  const bool is_aten = n.op == "aten._grouped_mm";
  Val x = n.tensor(is_aten ? "self" : "input"),
      weight = n.tensor(is_aten ? "mat2" : "weight"), ends = n.tensor("offs");
  if (n.failed()) return {};
  if (n.has("bias") || n.has("out_dtype"))
    return n.unsupported("a bias or another type of the result");
  if (x.rank() != 2 || weight.rank() != 3 || ends.rank() != 1 ||
      ends.isFloat() || ends.dim(0) != weight.dim(0) ||
      x.dim(1) != weight.dim(1))
    return n.error(
        "expected rows, a matrix of their width per group, and as many "
        "ends of groups");
  const int64_t rows = x.dim(0), groups = weight.dim(0);
  if (groups == 0) return n.error("expected at least one group");
  // A row's matrix is the number of groups that end at the row or before it.
  Val row = e.iota({rows, groups}, 0, e.i64());
  Val ended = e.compare(Compare::ge, row,
                        e.broadcast(e.cast(ends, e.i64()), row.shape()));
  Val ids = e.reduce(nn::ReduceKind::sum, e.cast(ended, e.i64()), {1}, false);
  return {e.create<nn::GroupedDotOp>(
      e.tensor({rows, weight.dim(2)}, x.element()), x.value, ids.value,
      weight.value, /*transposed=*/true)};
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
  if (rank < 3 || k.rank() != rank || v.rank() != rank ||
      (mask && mask.rank() > rank))
    return n.unsupported("operands of rank 2 or of different ranks");
  // Only a single dimension of heads may differ (grouped queries).
  for (int64_t i = 1; i + 2 < rank && rank > 4; ++i)
    if (k.dim(i) != q.dim(i) || v.dim(i) != q.dim(i))
      return n.unsupported("batch dimensions that differ");
  const double scale =
      n.number("scale", 1 / std::sqrt(static_cast<double>(q.dim(rank - 1))));
  builder::AttentionInputs inputs;
  inputs.q = e.reshape(q, withHeads(q.shape()));
  inputs.k = e.reshape(k, withHeads(k.shape()));
  inputs.v = e.reshape(v, withHeads(v.shape()));
  inputs.scale = scale;
  if (is_causal) inputs.causal_offset = 0;
  if (mask) {
    Val bias = mask.isBool() ? builder::biasOf(e, mask, q.element())
                             : e.cast(mask, q.elementType());
    inputs.bias = biasWithHeads(e, bias, q.shape());
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
  Shape shape(q.shape().drop_back());
  shape.push_back(y.dim(3));
  return e.reshape(y, shape);
}

}  // namespace partita::torch
