// Activation functions, softmax and dropout.
#include "frontends/builder/activation.h"

#include "frontends/torch/ops/ops.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace partita::torch {

Val importRelu(NodeContext& n) {
  Val x = n.tensor("self");
  if (n.failed()) return {};
  x = n.e.maximum(x, 0);
  return n.op == "aten.relu6" ? n.e.minimum(x, 6) : x;
}

Val importGelu(NodeContext& n) {
  Val x = n.tensor("self");
  const std::string approximate = n.text("approximate", "none");
  if (n.failed()) return {};
  if (approximate != "none" && approximate != "tanh")
    return n.unsupported("approximate=" + approximate);
  return builder::gelu(n.e, x, approximate == "tanh");
}

Val importSilu(NodeContext& n) {
  Val x = n.tensor("self");
  return n.failed() ? Val() : n.e.mul(x, n.e.sigmoid(x));
}

Val importSigmoid(NodeContext& n) {
  Val x = n.tensor("self");
  return n.failed() ? Val() : n.e.sigmoid(n.e.cast(x, n.resultType()));
}

Val importHardSigmoid(NodeContext& n) {
  Val x = n.tensor("self");
  if (n.failed()) return {};
  Val y = builder::hardSigmoid(n.e, x, 1.0 / 6, 0.5);
  return n.op == "aten.hardswish" ? n.e.mul(x, y) : y;
}

Val importHardTanh(NodeContext& n) {
  Val x = n.tensor("self");
  const double low = n.number("min_val", -1), high = n.number("max_val", 1);
  return n.failed() ? Val() : n.e.minimum(n.e.maximum(x, low), high);
}

Val importLeakyRelu(NodeContext& n) {
  Val x = n.tensor("self");
  const double slope = n.number("negative_slope", 0.01);
  return n.failed() ? Val() : builder::positiveOr(n.e, x, n.e.mul(x, slope));
}

Val importElu(NodeContext& n) {
  Val x = n.tensor("self");
  const double alpha = n.number("alpha", 1), scale = n.number("scale", 1),
               input_scale = n.number("input_scale", 1);
  if (n.failed()) return {};
  Val inner = input_scale == 1 ? x : n.e.mul(x, input_scale);
  Val negative = n.e.mul(builder::negativeExpm1(n.e, inner), alpha);
  Val y = builder::positiveOr(n.e, x, negative);
  return scale == 1 ? y : n.e.mul(y, scale);
}

Val importSoftplus(NodeContext& n) {
  Val x = n.tensor("self");
  const double beta = n.number("beta", 1);
  const double threshold = n.number("threshold", 20);
  if (n.failed()) return {};
  // Above 20 softplus(x) equals x in f32, so the default changes nothing.
  if (threshold != 20) return n.unsupported("another threshold than 20");
  if (beta == 1) return builder::softplus(n.e, x);
  return n.e.div(builder::softplus(n.e, n.e.mul(x, beta)), beta);
}

Val importMish(NodeContext& n) {
  Val x = n.tensor("self");
  if (n.failed()) return {};
  return n.e.mul(x, n.e.unary<mlir::math::TanhOp>(builder::softplus(n.e, x)));
}

Val importSoftmax(NodeContext& n) {
  Val x = n.tensor("self");
  const int64_t axis = n.axis("dim", x.rank());
  const ElementType type = n.resultType();
  if (n.failed()) return {};
  return n.e.softmax(n.e.cast(x, type), axis,
                     /*log=*/n.op.contains("log_softmax"));
}

Val importDropout(NodeContext& n) {
  Val x = n.tensor(n.has("self") ? "self" : "input");
  const double ratio = n.number("p", 0.5);
  const bool is_active = n.flag("train", true) && ratio != 0;
  if (n.failed() || !is_active) return x;
  if (!(ratio > 0 && ratio < 1))
    return n.error("expected a probability from 0 to below 1, found " +
                   std::to_string(ratio));
  return builder::dropout(n.e, x, ratio, n.nextSeed());
}

}  // namespace partita::torch
