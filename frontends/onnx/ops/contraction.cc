// Matrix products and Einsum.
#include "frontends/builder/einsum.h"
#include "frontends/onnx/ops/ops.h"

namespace partita::onnx {

LogicalResult importMatMul(NodeContext& n) {
  return n.result(n.e.matmul(n.in(0), n.in(1)));
}

LogicalResult importGemm(NodeContext& n) {
  Val a = n.in(0), b = n.in(1);
  if (a.rank() != 2 || b.rank() != 2) return n.error("expected matrices");
  int64_t contract_a = n.attrInt("transA", 0) ? 0 : 1,
          contract_b = n.attrInt("transB", 0) ? 1 : 0;
  Val product = n.e.dot(a, b, {}, {}, {contract_a}, {contract_b});
  double alpha = n.attrFloat("alpha", 1), beta = n.attrFloat("beta", 1);
  if (alpha != 1) product = n.e.mul(product, alpha);
  if (!n.has(2) || beta == 0) return n.result(product);
  Val c = n.in(2);
  if (beta != 1) c = n.e.mul(c, beta);
  return n.result(n.e.add(product, c));
}

LogicalResult importEinsum(NodeContext& n) {
  Val result = builder::einsum(n.e, n.attrString("equation", ""), n.ins());
  return result ? n.result(result) : failure();
}

}  // namespace partita::onnx
