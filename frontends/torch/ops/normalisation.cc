// Normalisations.
#include "frontends/builder/normalisation.h"

#include <cmath>

#include "frontends/torch/ops/ops.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace partita::torch {
namespace {

// The first normalised dimension of normalized_shape.
int64_t normalisedAxis(NodeContext& n, Val x) {
  const Shape shape = n.ints("normalized_shape");
  const int64_t count = static_cast<int64_t>(shape.size());
  if (n.failed()) return 0;
  if (count == 0 || count > x.rank() ||
      x.shape().take_back(count) != Dims(shape)) {
    n.error("expected a normalized_shape at the end of " + toString(x.shape()) +
            ", found " + toString(Dims(shape)));
    return 0;
  }
  return x.rank() - count;
}

}  // namespace

Val importLayerNorm(NodeContext& n) {
  Val x = n.tensor("input"), scale = n.optionalTensor("weight"),
      bias = n.optionalTensor("bias");
  const int64_t axis = normalisedAxis(n, x);
  const double epsilon = n.number("eps", 1e-5);
  return n.failed() ? Val()
                    : builder::layerNorm(n.e, x, scale, bias, axis, epsilon);
}

Val importRmsNorm(NodeContext& n) {
  Val x = n.tensor("input"), scale = n.optionalTensor("weight");
  const int64_t axis = normalisedAxis(n, x);
  // Without epsilon, the smallest difference to 1 of the type.
  const double epsilon =
      n.number("eps", !n.failed() && x.element().isF64()
                          ? std::numeric_limits<double>::epsilon()
                          : std::numeric_limits<float>::epsilon());
  return n.failed() ? Val() : builder::rmsNorm(n.e, x, scale, axis, epsilon);
}

Val importGroupNorm(NodeContext& n) {
  Val x = n.tensor("input"), scale = n.optionalTensor("weight"),
      bias = n.optionalTensor("bias");
  const int64_t groups = n.integer("num_groups");
  const double epsilon = n.number("eps", 1e-5);
  if (n.failed()) return {};
  if (x.rank() < 2 || groups < 1 || x.dim(1) % groups != 0)
    return n.error("expected num_groups to divide the channels");
  Val y = builder::normaliseGroups(n.e, x, groups, epsilon);
  if (scale) y = n.e.mul(y, builder::perChannel(n.e, scale, x.rank()));
  if (bias) y = n.e.add(y, builder::perChannel(n.e, bias, x.rank()));
  return y;
}

Val importBatchNorm(NodeContext& n) {
  Emitter& e = n.e;
  Val x = n.tensor("input");
  const bool is_training = n.flag("training", false);
  const double epsilon = n.number("eps", 1e-5),
               momentum = n.number("momentum", 0.1);
  if (n.failed()) return {};
  if (x.rank() < 2) return n.error("expected an input of rank 2 or more");
  llvm::SmallVector<Val> operands;
  static constexpr std::pair<const char*, double> kOperands[] = {
      {"weight", 1}, {"bias", 0}, {"running_mean", 0}, {"running_var", 1}};
  for (const auto& [name, absent] : kOperands) {
    if (!n.has(name) && llvm::StringRef(name).starts_with("running_"))
      return n.unsupported("a batch norm without running statistics");
    Val vector = n.has(name) ? n.tensor(name)
                             : e.splat(absent, x.elementType(), {x.dim(1)});
    if (n.failed()) return {};
    if (vector.rank() != 1 || vector.dim(0) != x.dim(1))
      return n.error("expected vectors with one entry per channel");
    operands.push_back(e.cast(vector, x.elementType()));
  }
  builder::BatchNorm norm{operands[0], operands[1], operands[2], operands[3]};
  norm.epsilon = epsilon;
  norm.momentum = momentum;
  norm.training = norm.unbiased = is_training;
  return builder::batchNorm(e, x, norm).front();
}

Val importVectorNorm(NodeContext& n) {
  Emitter& e = n.e;
  Val x = n.tensor("self");
  const double p = n.number("ord", 2);
  const Shape dims = n.axes("dim", x.rank());
  const bool keep = n.flag("keepdim", false);
  if (n.failed()) return {};
  if (p == 2)
    return e.unary<mlir::math::SqrtOp>(
        e.reduce(nn::ReduceKind::sum, e.mul(x, x), dims, keep));
  if (p == 1) return e.reduce(nn::ReduceKind::sum, e.abs(x), dims, keep);
  if (std::isinf(p) && p > 0)
    return e.reduce(nn::ReduceKind::max, e.abs(x), dims, keep);
  return n.unsupported("a norm of order " + std::to_string(p));
}

}  // namespace partita::torch
