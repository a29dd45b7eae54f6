// Normalisation per feature, and its gradients. Statistics are those of the
// batch, with the population's variance.
#include "frontends/stablehlo/ops/ops.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace partita::stablehlo {
namespace {

struct Norm {
  int64_t feature;
  double epsilon;
  Shape others;  // all dimensions but the feature's
};

// The operands after the first have an entry per feature, but for the last if
// `has_gradient`.
bool readNorm(OpContext& n, const Values& operands, bool has_gradient,
              Norm& norm) {
  if (n.failed()) return false;
  const Val x = operands.front();
  norm.feature = n.dimension("feature_index", x.rank());
  const auto epsilon = n.op.getAttrOfType<mlir::FloatAttr>("epsilon");
  if (n.failed()) return false;
  const size_t vectors = operands.size() - (has_gradient ? 1 : 0);
  bool fits = epsilon && x.isFloat();
  for (size_t i = 1; fits && i < operands.size(); ++i)
    fits = operands[i].elementType() == x.elementType() &&
           (i < vectors ? operands[i].shape() == Dims(x.dim(norm.feature))
                        : operands[i].shape() == x.shape());
  if (!fits) {
    n.error("expected floats with an entry per feature");
    return false;
  }
  norm.epsilon = epsilon.getValue().convertToDouble();
  for (int64_t i = 0; i < x.rank(); ++i)
    if (i != norm.feature) norm.others.push_back(i);
  return true;
}

Val perFeature(Emitter& e, Val vector, Val x, const Norm& norm) {
  return e.broadcastDims(vector, x.shape(), {norm.feature});
}

Val meanOf(Emitter& e, Val x, const Norm& norm) {
  return e.mean(x, norm.others, /*keep_dims=*/false);
}

Val inverseDeviation(Emitter& e, Val variance, const Norm& norm) {
  return e.unary<mlir::math::RsqrtOp>(e.add(variance, norm.epsilon));
}

}  // namespace

Val importBatchNorm(OpContext& n) {
  const Values operands = n.all();
  const bool is_training = n.name == "batch_norm_training";
  Norm norm;
  if (operands.size() != (is_training ? 3 : 5))
    return n.error("expected " + llvm::Twine(is_training ? 3 : 5) +
                   " operands, found " + llvm::Twine(operands.size()));
  if (!readNorm(n, operands, /*has_gradient=*/false, norm)) return {};
  Emitter& e = n.e;
  const Val x = operands[0];
  Val mean = is_training ? meanOf(e, x, norm) : operands[3];
  const Val centred = e.sub(x, perFeature(e, mean, x, norm));
  const Val variance =
      is_training ? meanOf(e, e.mul(centred, centred), norm) : operands[4];
  const Val scale = e.mul(operands[1], inverseDeviation(e, variance, norm));
  n.out(0, e.add(e.mul(centred, perFeature(e, scale, x, norm)),
                 perFeature(e, operands[2], x, norm)));
  if (is_training) {
    n.out(1, mean);
    n.out(2, variance);
  }
  return {};
}

Val importBatchNormGrad(OpContext& n) {
  const Values operands = n.all();
  Norm norm;
  if (operands.size() != 5)
    return n.error("expected 5 operands, found " +
                   llvm::Twine(operands.size()));
  if (!readNorm(n, operands, /*has_gradient=*/true, norm)) return {};
  Emitter& e = n.e;
  const Val x = operands[0], g = operands[4];
  const Val inverse = inverseDeviation(e, operands[3], norm);
  const Val normal = e.mul(e.sub(x, perFeature(e, operands[2], x, norm)),
                           perFeature(e, inverse, x, norm));
  const Val product = e.mul(g, normal);
  // The gradient's components along the mean and the variance vanish.
  const Val passed =
      e.sub(e.sub(g, perFeature(e, meanOf(e, g, norm), x, norm)),
            e.mul(normal, perFeature(e, meanOf(e, product, norm), x, norm)));
  n.out(0, e.mul(passed, perFeature(e, e.mul(operands[1], inverse), x, norm)));
  n.out(1, e.reduce(nn::ReduceKind::sum, product, norm.others, false));
  n.out(2, e.reduce(nn::ReduceKind::sum, g, norm.others, false));
  return {};
}

}  // namespace partita::stablehlo
