// Activation functions, built from arithmetic.
#include "frontends/builder/activation.h"

#include "frontends/onnx/ops/ops.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace partita::onnx {

namespace math = mlir::math;

using builder::negativeExpm1;
using builder::positiveOr;
using builder::softplus;

LogicalResult importRelu(NodeContext& n) {
  return n.result(n.e.maximum(n.in(0), 0));
}

LogicalResult importSigmoid(NodeContext& n) {
  return n.result(n.e.sigmoid(n.in(0)));
}

LogicalResult importSwish(NodeContext& n) {
  Val x = n.in(0);
  double alpha = n.attrFloat("alpha", 1);
  return n.result(n.e.mul(x, n.e.sigmoid(alpha == 1 ? x : n.e.mul(x, alpha))));
}

LogicalResult importHardSigmoid(NodeContext& n) {
  Val x = n.in(0);
  bool is_swish = n.op() == "HardSwish";
  double alpha = is_swish ? 1.0 / 6 : n.attrFloat("alpha", 0.2),
         beta = is_swish ? 0.5 : n.attrFloat("beta", 0.5);
  Val y = builder::hardSigmoid(n.e, x, alpha, beta);
  return n.result(is_swish ? n.e.mul(x, y) : y);
}

LogicalResult importLeakyRelu(NodeContext& n) {
  Val x = n.in(0);
  return n.result(n.e.select(n.e.compare(Compare::ge, x, 0.0), x,
                             n.e.mul(x, n.attrFloat("alpha", 0.01))));
}

LogicalResult importPRelu(NodeContext& n) {
  Val x = n.in(0), slope = n.in(1);
  // Before opset 7, a vector of slopes had one entry per channel.
  if (n.opset < 7 && slope.rank() == 1 && slope.dim(0) != 1 && x.rank() > 2) {
    Shape shape(x.rank() - 1, 1);
    shape[0] = slope.dim(0);
    slope = n.e.reshape(slope, shape);
  }
  return n.result(
      n.e.select(n.e.compare(Compare::lt, x, 0.0), n.e.mul(x, slope), x));
}

LogicalResult importElu(NodeContext& n) {
  Val x = n.in(0);
  if (n.op() == "Selu") {
    double alpha = n.attrFloat("alpha", 1.67326319217681884765625),
           gamma = n.attrFloat("gamma", 1.05070102214813232421875);
    return n.result(n.e.mul(
        positiveOr(n.e, x, n.e.mul(negativeExpm1(n.e, x), alpha)), gamma));
  }
  double alpha = n.attrFloat("alpha", 1);
  Val inner = n.op() == "Celu" ? n.e.div(x, alpha) : x;
  return n.result(
      positiveOr(n.e, x, n.e.mul(negativeExpm1(n.e, inner), alpha)));
}

LogicalResult importSoftplus(NodeContext& n) {
  return n.result(softplus(n.e, n.in(0)));
}

LogicalResult importSoftsign(NodeContext& n) {
  Val x = n.in(0);
  return n.result(n.e.div(x, n.e.add(n.e.abs(x), 1)));
}

LogicalResult importMish(NodeContext& n) {
  Val x = n.in(0);
  return n.result(n.e.mul(x, n.e.unary<math::TanhOp>(softplus(n.e, x))));
}

LogicalResult importThresholdedRelu(NodeContext& n) {
  Val x = n.in(0);
  return n.result(
      n.e.select(n.e.compare(Compare::gt, x, n.attrFloat("alpha", 1)), x,
                 n.e.splatLike(0, x)));
}

LogicalResult importShrink(NodeContext& n) {
  Val x = n.in(0);
  double lambd = n.attrFloat("lambd", 0.5), bias = n.attrFloat("bias", 0);
  Val inner = n.e.select(n.e.compare(Compare::gt, x, lambd), n.e.sub(x, bias),
                         n.e.splatLike(0, x));
  return n.result(
      n.e.select(n.e.compare(Compare::lt, x, -lambd), n.e.add(x, bias), inner));
}

LogicalResult importGelu(NodeContext& n) {
  std::string approximate = n.attrString("approximate", "none");
  if (approximate != "none" && approximate != "tanh")
    return n.unsupported("approximate=" + approximate);
  return n.result(builder::gelu(n.e, n.in(0), approximate == "tanh"));
}

}  // namespace partita::onnx
