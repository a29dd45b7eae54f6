// Attention (opsets 23 and 24) and rotary position embedding.
#include "frontends/builder/attention.h"

#include <cmath>

#include "frontends/onnx/ops/ops.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::onnx {
namespace {

using builder::AttentionInputs;
using builder::biasOf;

// Converts [B, L, heads * size] to [B, heads, L, size]. A tensor with four
// dimensions is already in that form.
FailureOr<Val> splitHeads(NodeContext& n, Val x, llvm::StringRef attribute) {
  if (x.rank() == 4) return x;
  int64_t heads = n.attrInt(attribute, 0);
  if (x.rank() != 3 || heads < 1 || x.dim(2) % heads != 0) {
    return n.error("expected inputs of rank 4, or of rank 3 with " + attribute +
                   " dividing the last size");
  }
  Val split = n.e.reshape(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads});
  return n.e.transpose(split, {0, 2, 1, 3});
}

// The mask as an additive bias with four dimensions and all keys.
FailureOr<Val> maskBias(NodeContext& n, const AttentionInputs& inputs) {
  Emitter& e = n.e;
  Val mask = n.in(3);
  if (mask.rank() < 2 || mask.rank() > 4)
    return n.error("expected an attn_mask of rank 2 to 4");
  Val bias = mask.isBool() ? biasOf(e, mask, inputs.q.element())
                           : e.cast(mask, inputs.q.elementType());
  Shape shape(4 - bias.rank(), 1);
  llvm::append_range(shape, bias.shape());
  bias = e.reshape(bias, shape);
  int64_t missing = inputs.k.dim(2) - bias.dim(3);
  if (missing > 0 && (n.opset >= 24 || bias.dim(3) != 1)) {
    bias = e.pad(bias, e.splat(-INFINITY, bias.element()), {0, 0, 0, 0},
                 {0, 0, 0, missing});
  }
  return bias;
}

FailureOr<AttentionInputs> readInputs(NodeContext& n) {
  static constexpr llvm::StringRef kKnown[] = {
      "is_causal", "kv_num_heads", "q_num_heads",      "qk_matmul_output_mode",
      "scale",     "softcap",      "softmax_precision"};
  for (const Attribute& attribute : n.node.attributes) {
    if (!llvm::is_contained(kKnown, llvm::StringRef(attribute.name))) {
      return n.unsupported(llvm::StringRef(attribute.name));
    }
  }
  Emitter& e = n.e;
  auto q = splitHeads(n, n.in(0), "q_num_heads");
  auto k = splitHeads(n, n.in(1), "kv_num_heads"),
       v = splitHeads(n, n.in(2), "kv_num_heads");
  if (failed(q) || failed(k) || failed(v)) return failure();
  AttentionInputs inputs = {
      *q, *k, *v, {}, 0, n.attrFloat("softcap", 0), std::nullopt};
  inputs.scale =
      n.attrFloat("scale", 1 / std::sqrt(static_cast<double>(q->dim(3))));
  int64_t past = 0;
  if (n.has(4) && n.has(5)) {
    if (n.in(4).rank() != 4 || n.in(5).rank() != 4)
      return n.error("expected a past of rank 4");
    past = n.in(4).dim(2);
    inputs.k = e.concat({n.in(4), inputs.k}, 2);
    inputs.v = e.concat({n.in(5), inputs.v}, 2);
  }
  if (n.has(3)) {
    auto bias = maskBias(n, inputs);
    if (failed(bias)) return failure();
    inputs.bias = *bias;
  }
  bool is_causal = n.attrInt("is_causal", 0);
  if (n.has(6)) {
    if (is_causal) return n.unsupported("is_causal with nonpad_kv_seqlen");
    Val length = e.cast(n.in(6), e.i64());
    Val key = e.iota({1, 1, 1, inputs.k.dim(2)}, 3, e.i64());
    Val padding = biasOf(e,
                         e.compare(Compare::lt, key,
                                   e.reshape(length, {length.size(), 1, 1, 1})),
                         inputs.q.element());
    inputs.bias = inputs.bias ? e.add(inputs.bias, padding) : padding;
  }
  if (is_causal) inputs.causal_offset = past;
  return inputs;
}

}  // namespace

LogicalResult importAttention(NodeContext& n) {
  auto inputs = readInputs(n);
  if (failed(inputs)) return failure();
  if (n.e.failed()) return failure();
  Emitter& e = n.e;
  Val y = builder::attend(e, *inputs);
  if (n.in(0).rank() == 3) {
    y = e.reshape(e.transpose(y, {0, 2, 1, 3}),
                  {y.dim(0), y.dim(2), y.dim(1) * y.dim(3)});
  }
  n.out(0, y);
  n.out(1, inputs->k);
  n.out(2, inputs->v);
  if (n.wants(3)) {
    int64_t mode = n.attrInt("qk_matmul_output_mode", 0);
    if (mode < 0 || mode > 3)
      return n.error("expected qk_matmul_output_mode 0 to 3");
    n.out(3, builder::attentionScores(e, *inputs, mode));
  }
  return success();
}

LogicalResult importRotaryEmbedding(NodeContext& n) {
  Emitter& e = n.e;
  Val x = n.in(0), cos = n.in(1), sin = n.in(2);
  bool is_packed = x.rank() == 3;
  int64_t heads = n.attrInt("num_heads", 0);
  if (is_packed) {
    if (heads < 1 || x.dim(2) % heads != 0)
      return n.error("expected num_heads to divide the last size");
    x = e.reshape(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads});
  }
  if (x.rank() != 4) return n.error("expected an input of rank 3 or 4");
  int64_t size = x.dim(3), rotated = n.attrInt("rotary_embedding_dim", 0);
  if (rotated == 0) rotated = size;
  if (rotated < 2 || rotated > size || rotated % 2 != 0)
    return n.error("expected an even rotary_embedding_dim");
  int64_t half = rotated / 2;
  // Converts [batch, length, half] and adds a dimension for the heads.
  auto prepare = [&](Val cache) {
    if (n.has(3)) {
      Val ids = n.in(3);
      Shape with_one(ids.shape());
      with_one.push_back(1);
      cache = e.gather(cache, e.reshape(ids, with_one), {0});
    }
    if (cache.rank() != 3 || cache.dim(2) != half) {
      e.error("RotaryEmbedding: expected caches of [batch, length, " +
              llvm::Twine(half) + "]");
      return cache;
    }
    Shape shape(cache.shape());
    shape.insert(shape.begin() + (is_packed ? 2 : 1), 1);
    return e.reshape(cache, shape);
  };
  cos = prepare(cos);
  sin = prepare(sin);
  if (e.failed()) return failure();
  bool interleaved = n.attrInt("interleaved", 0);
  Val first =
      interleaved ? e.sliceDim(x, 3, 0, half, 2) : e.sliceDim(x, 3, 0, half);
  Val second =
      interleaved ? e.sliceDim(x, 3, 1, half, 2) : e.sliceDim(x, 3, half, half);
  Val real = e.sub(e.mul(cos, first), e.mul(sin, second));
  Val imaginary = e.add(e.mul(sin, first), e.mul(cos, second));
  Val y;
  if (interleaved) {
    Shape pair(real.shape()), joined(real.shape());
    pair.push_back(1);
    joined.back() = rotated;
    y = e.reshape(
        e.concat({e.reshape(real, pair), e.reshape(imaginary, pair)}, 4),
        joined);
  } else {
    y = e.concat({real, imaginary}, 3);
  }
  if (rotated < size)
    y = e.concat({y, e.sliceDim(x, 3, rotated, size - rotated)}, 3);
  return n.result(e.reshape(y, n.in(0).shape()));
}

}  // namespace partita::onnx
