#include "frontends/builder/normalisation.h"

namespace partita::builder {
namespace {

mlir::IntegerAttr i64(Emitter& e, int64_t value) {
  return e.builder().getI64IntegerAttr(value);
}

mlir::FloatAttr f64(Emitter& e, double value) {
  return e.builder().getF64FloatAttr(value);
}

}  // namespace

Val layerNorm(Emitter& e, Val x, Val scale, Val bias, int64_t axis,
              double epsilon) {
  return {e.create<nn::LayerNormOp>(x.type(), x.value, scale.value, bias.value,
                                    i64(e, axis), f64(e, epsilon))};
}

Val rmsNorm(Emitter& e, Val x, Val scale, int64_t axis, double epsilon) {
  return {e.create<nn::RmsNormOp>(x.type(), x.value, scale.value, i64(e, axis),
                                  f64(e, epsilon))};
}

Val normaliseGroups(Emitter& e, Val x, int64_t groups, double epsilon) {
  const int64_t rows = std::max<int64_t>(x.dim(0) * groups, 1);
  Val grouped = e.reshape(x, {x.dim(0), groups, x.size() / rows});
  return e.reshape(layerNorm(e, grouped, {}, {}, 2, epsilon), x.shape());
}

llvm::SmallVector<Val> batchNorm(Emitter& e, Val x, const BatchNorm& norm) {
  llvm::SmallVector<mlir::Type> types = {x.type()};
  if (norm.training) types.append(2, e.tensor({x.dim(1)}, x.element()));
  const mlir::UnitAttr given = e.builder().getUnitAttr();
  auto results = e.finish(nn::BatchNormOp::create(
      e.builder(), e.loc(), types.front(), llvm::ArrayRef(types).drop_front(),
      x.value, norm.scale.value, norm.bias.value, norm.mean.value,
      norm.variance.value, i64(e, 1), f64(e, norm.epsilon),
      norm.training ? given : mlir::UnitAttr(), f64(e, norm.momentum),
      norm.unbiased ? given : mlir::UnitAttr()));
  llvm::SmallVector<Val> values;
  for (mlir::Value result : results) values.push_back({result});
  return values;
}

Val perChannel(Emitter& e, Val vector, int64_t rank) {
  Shape shape(std::max<int64_t>(rank - 1, 1), 1);
  shape[0] = vector.size();
  return e.reshape(vector, shape);
}

}  // namespace partita::builder
