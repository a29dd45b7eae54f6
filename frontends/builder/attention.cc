#include "frontends/builder/attention.h"

#include "mlir/Dialect/Math/IR/Math.h"

namespace partita::builder {

Val biasOf(Emitter& e, Val visible, mlir::Type element) {
  return e.select(visible, e.splat(0, element), e.splat(-INFINITY, element));
}

Val attend(Emitter& e, const AttentionInputs& inputs) {
  mlir::Builder& builder = e.builder();
  const Val q = inputs.q, v = inputs.v;
  mlir::IntegerAttr offset;
  if (inputs.causal_offset)
    offset = builder.getI64IntegerAttr(*inputs.causal_offset);
  return {e.create<nn::AttentionOp>(
      e.tensor({q.dim(0), q.dim(1), q.dim(2), v.dim(3)}, q.element()), q.value,
      inputs.k.value, v.value, inputs.bias.value,
      builder.getF64FloatAttr(inputs.scale), offset,
      builder.getF64FloatAttr(inputs.softcap))};
}

Val repeatHeads(Emitter& e, Val x, int64_t heads) {
  const int64_t group = heads / std::max<int64_t>(x.dim(1), 1);
  if (group <= 1) return x;
  Shape expanded = {x.dim(0), x.dim(1), group, x.dim(2), x.dim(3)};
  return e.reshape(e.broadcastDims(x, expanded, {0, 1, 3, 4}),
                   {x.dim(0), x.dim(1) * group, x.dim(2), x.dim(3)});
}

Val attentionScores(Emitter& e, const AttentionInputs& inputs, int64_t mode) {
  Val k = repeatHeads(e, inputs.k, inputs.q.dim(1));
  Val result =
      e.mul(e.dot(inputs.q, k, {0, 1}, {0, 1}, {3}, {3}), inputs.scale);
  if (mode >= 1 && inputs.softcap > 0) {
    result = e.mul(e.unary<mlir::math::TanhOp>(e.div(result, inputs.softcap)),
                   inputs.softcap);
  }
  if (mode >= 2 && inputs.bias) result = e.add(result, inputs.bias);
  if (mode >= 2 && inputs.causal_offset) {
    Dims shape = result.shape().take_back(2);
    Val query = e.add(e.iota(shape, 0, e.i64()),
                      static_cast<double>(*inputs.causal_offset));
    Val visible = e.compare(Compare::ge, query, e.iota(shape, 1, e.i64()));
    result = e.add(result, biasOf(e, visible, result.element()));
  }
  return mode == 3 ? e.softmax(result, 3) : result;
}

}  // namespace partita::builder
