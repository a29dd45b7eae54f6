// The operations that models are written with: constants, elementwise
// operations, movement, contractions, and the layers made of them.
#include "frontends/huggingface/builder.h"

#include <cmath>
#include <limits>

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace partita::huggingface {

namespace arith = mlir::arith;
namespace math = mlir::math;
using mlir::DenseElementsAttr;
using mlir::RankedTensorType;

RankedTensorType Builder::f32(ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, builder_.getF32Type());
}

RankedTensorType Builder::i64(ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, builder_.getI64Type());
}

ArrayRef<int64_t> Builder::shapeOf(Value value) const {
  return mlir::cast<RankedTensorType>(value.getType()).getShape();
}

// Constants.

Value Builder::splat(ArrayRef<int64_t> shape, double value) {
  return arith::ConstantOp::create(
      builder_, loc_,
      DenseElementsAttr::get(f32(shape), static_cast<float>(value)));
}

Value Builder::floats(ArrayRef<int64_t> shape, ArrayRef<float> values) {
  return arith::ConstantOp::create(builder_, loc_,
                                   DenseElementsAttr::get(f32(shape), values));
}

Value Builder::integers(ArrayRef<int64_t> shape, ArrayRef<int64_t> values) {
  return arith::ConstantOp::create(builder_, loc_,
                                   DenseElementsAttr::get(i64(shape), values));
}

Value Builder::integerSplat(ArrayRef<int64_t> shape, int64_t value) {
  return arith::ConstantOp::create(builder_, loc_,
                                   DenseElementsAttr::get(i64(shape), value));
}

Value Builder::iota(ArrayRef<int64_t> shape, int64_t dim) {
  return nn::IotaOp::create(builder_, loc_, i64(shape),
                            builder_.getI64IntegerAttr(dim));
}

// Elementwise.

Value Builder::add(Value a, Value b) {
  return arith::AddFOp::create(builder_, loc_, a, b);
}
Value Builder::sub(Value a, Value b) {
  return arith::SubFOp::create(builder_, loc_, a, b);
}
Value Builder::mul(Value a, Value b) {
  return arith::MulFOp::create(builder_, loc_, a, b);
}
Value Builder::div(Value a, Value b) {
  return arith::DivFOp::create(builder_, loc_, a, b);
}
Value Builder::addIntegers(Value a, Value b) {
  return arith::AddIOp::create(builder_, loc_, a, b);
}
Value Builder::subIntegers(Value a, Value b) {
  return arith::SubIOp::create(builder_, loc_, a, b);
}
Value Builder::mulIntegers(Value a, Value b) {
  return arith::MulIOp::create(builder_, loc_, a, b);
}

Value Builder::scale(Value x, double factor) {
  return mul(x, splat(shapeOf(x), factor));
}

Value Builder::atLeast(Value x, double bound) {
  return arith::MaximumFOp::create(builder_, loc_, x, splat(shapeOf(x), bound));
}

Value Builder::toFloat(Value integers) {
  return arith::SIToFPOp::create(builder_, loc_, f32(shapeOf(integers)),
                                 integers);
}

ArrayRef<StringRef> Builder::activationNames() {
  static constexpr StringRef names[] = {
      "gelu",      "gelu_new", "gelu_pytorch_tanh", "gelu_tanh",
      "gelu_fast", "relu",     "quick_gelu",        "silu",
      "swish",     "tanh"};
  return names;
}

Value Builder::sigmoid(Value x) {
  const Value one = splat(shapeOf(x), 1.0);
  const Value negated = arith::NegFOp::create(builder_, loc_, x);
  return div(one, add(one, math::ExpOp::create(builder_, loc_, negated)));
}

Value Builder::activation(Value x, StringRef name) {
  if (name == "relu") return atLeast(x, 0.0);
  if (name == "tanh") return math::TanhOp::create(builder_, loc_, x);
  if (name == "silu" || name == "swish") return mul(x, sigmoid(x));
  if (name == "quick_gelu") return mul(x, sigmoid(scale(x, 1.702)));
  const Value one = splat(shapeOf(x), 1.0);
  Value inner;
  if (name == "gelu") {
    inner = math::ErfOp::create(builder_, loc_, scale(x, M_SQRT1_2));
  } else {
    const Value cube = mul(mul(x, x), x);
    inner = math::TanhOp::create(
        builder_, loc_,
        scale(add(x, scale(cube, 0.044715)), std::sqrt(2.0 / M_PI)));
  }
  return mul(scale(x, 0.5), add(one, inner));
}

// Movement.

Value Builder::reshape(Value x, ArrayRef<int64_t> shape) {
  if (shapeOf(x) == shape) return x;
  const auto type = mlir::cast<RankedTensorType>(x.getType());
  return nn::ReshapeOp::create(
      builder_, loc_, RankedTensorType::get(shape, type.getElementType()), x);
}

Value Builder::transpose(Value x, ArrayRef<int64_t> perm) {
  return nn::TransposeOp::create(builder_, loc_, x, perm);
}

Value Builder::broadcast(Value x, ArrayRef<int64_t> shape,
                         ArrayRef<int64_t> dims) {
  if (shapeOf(x) == shape) return x;
  const auto type = mlir::cast<RankedTensorType>(x.getType());
  return nn::BroadcastOp::create(
      builder_, loc_, RankedTensorType::get(shape, type.getElementType()), x,
      dims);
}

Value Builder::slice(Value x, int64_t dim, int64_t start, int64_t size) {
  const auto type = mlir::cast<RankedTensorType>(x.getType());
  Shape shape(type.getShape()), starts(type.getRank(), 0),
      strides(type.getRank(), 1);
  if (shape[dim] == size) return x;
  shape[dim] = size;
  starts[dim] = start;
  return nn::SliceOp::create(
      builder_, loc_, RankedTensorType::get(shape, type.getElementType()), x,
      starts, strides);
}

Value Builder::concat(ArrayRef<Value> values, int64_t axis) {
  const auto type = mlir::cast<RankedTensorType>(values.front().getType());
  Shape shape(type.getShape());
  for (const Value value : values.drop_front())
    shape[axis] += shapeOf(value)[axis];
  return nn::ConcatOp::create(
      builder_, loc_, RankedTensorType::get(shape, type.getElementType()),
      values, axis);
}

Value Builder::rows(Value table, Value indices) {
  Shape index_shape(shapeOf(indices));
  index_shape.push_back(1);
  const Value vectors = reshape(indices, index_shape);
  const RankedTensorType type = nn::inferGatherType(
      mlir::cast<RankedTensorType>(table.getType()),
      mlir::cast<RankedTensorType>(vectors.getType()), {0}, 0);
  return nn::GatherOp::create(builder_, loc_, type, table, vectors,
                              ArrayRef<int64_t>{0});
}

// Contraction and reduction.

Value Builder::project(Value x, Value w, Value bias, bool input_first) {
  const int64_t last = rankOf(x) - 1;
  const Value product = nn::DotGeneralOp::create(
      builder_, loc_, x, w, ArrayRef<int64_t>{}, ArrayRef<int64_t>{},
      ArrayRef<int64_t>{last}, ArrayRef<int64_t>{input_first ? 0 : 1});
  return bias ? add(product, broadcast(bias, shapeOf(product), {last}))
              : product;
}

Value Builder::sum(Value x, ArrayRef<int64_t> dims) {
  return nn::ReduceOp::create(builder_, loc_, nn::ReduceKind::sum, x, dims);
}

Value Builder::unitLength(Value x) {
  const int64_t last = rankOf(x) - 1;
  const Value norm = atLeast(
      math::SqrtOp::create(builder_, loc_, sum(mul(x, x), {last})), 1e-12);
  return div(x, broadcast(norm, shapeOf(x),
                          llvm::to_vector(llvm::seq<int64_t>(0, last))));
}

Value Builder::conv(Value x, Value w, int64_t stride, int64_t padding,
                    int64_t groups) {
  const ArrayRef<int64_t> in = shapeOf(x), kernel = shapeOf(w);
  const auto size = [&](int d) {
    return nn::windowedSize(in[d], kernel[d], stride, 1, padding, padding);
  };
  const Shape strides(2, stride), dilations(2, 1), pads(2, padding);
  return nn::ConvOp::create(
      builder_, loc_, f32({in[0], kernel[0], size(2), size(3)}), x, w, strides,
      dilations, pads, pads, groups, /*channels_last=*/false);
}

Value Builder::addChannelBias(Value x, Value bias) {
  return add(x, broadcast(bias, shapeOf(x), {1}));
}

// Layers with weights.

Value Builder::linear(Value x, const std::string& name, int64_t out, bool bias,
                      Init init) {
  const Value w = weight(name + ".weight", {out, shapeOf(x).back()}, init);
  return project(x, w,
                 bias ? weight(name + ".bias", {out}, Init::zeros()) : Value());
}

Value Builder::conv1d(Value x, const std::string& name, int64_t out,
                      Init init) {
  const Value w = weight(name + ".weight", {shapeOf(x).back(), out}, init);
  return project(x, w, weight(name + ".bias", {out}, Init::zeros()),
                 /*input_first=*/true);
}

Value Builder::layerNorm(Value x, const std::string& name, double epsilon) {
  const int64_t axis = rankOf(x) - 1, size = shapeOf(x).back();
  const Value gain = weight(name + ".weight", {size}, Init::ones());
  const Value bias = weight(name + ".bias", {size}, Init::zeros());
  return nn::LayerNormOp::create(builder_, loc_, x.getType(), x, gain, bias,
                                 builder_.getI64IntegerAttr(axis),
                                 builder_.getF64FloatAttr(epsilon));
}

Value Builder::rmsNorm(Value x, const std::string& name, double epsilon) {
  const Value gain =
      weight(name + ".weight", {shapeOf(x).back()}, Init::ones());
  return nn::RmsNormOp::create(builder_, loc_, x.getType(), x, gain,
                               builder_.getI64IntegerAttr(rankOf(x) - 1),
                               builder_.getF64FloatAttr(epsilon));
}

Value Builder::batchNorm(Value x, const std::string& name, double epsilon,
                         int64_t feature) {
  const Shape shape = {shapeOf(x)[feature]};
  const Value gain = weight(name + ".weight", shape, Init::ones());
  const Value bias = weight(name + ".bias", shape, Init::zeros());
  const Value mean =
      weight(name + ".running_mean", shape, Init::zeros(), "buffer");
  const Value variance =
      weight(name + ".running_var", shape, Init::ones(), "buffer");
  mlir::SmallVector<mlir::Type> types = {x.getType()};
  if (training_) types.append(2, mean.getType());
  // Follows PyTorch: momentum 0.1 with the batch's unbiased variance.
  const auto training = training_ ? builder_.getUnitAttr() : mlir::UnitAttr();
  return nn::BatchNormOp::create(builder_, loc_, types, x, gain, bias, mean,
                                 variance, builder_.getI64IntegerAttr(feature),
                                 builder_.getF64FloatAttr(epsilon), training,
                                 builder_.getF64FloatAttr(0.1),
                                 /*unbiased=*/training)
      .getResult();
}

// Attention.

Value Builder::splitHeads(Value x, int64_t heads) {
  const ArrayRef<int64_t> shape = shapeOf(x);
  return transpose(reshape(x, {shape[0], shape[1], heads, shape[2] / heads}),
                   {0, 2, 1, 3});
}

Value Builder::mergeHeads(Value x) {
  const ArrayRef<int64_t> shape = shapeOf(x);
  return reshape(transpose(x, {0, 2, 1, 3}),
                 {shape[0], shape[2], shape[1] * shape[3]});
}

Value Builder::attention(Value q, Value k, Value v, Value bias, double scale,
                         bool causal, double dropout,
                         std::optional<int64_t> window) {
  if (seed_ && dropout > 0.0)
    return attentionByScores(q, k, v, bias, scale, causal, dropout, window);
  Shape shape(shapeOf(q));
  shape.back() = shapeOf(v).back();
  return nn::AttentionOp::create(
             builder_, loc_, f32(shape), q, k, v, bias,
             builder_.getF64FloatAttr(scale),
             causal ? builder_.getI64IntegerAttr(0) : mlir::IntegerAttr(),
             builder_.getF64FloatAttr(0.0),
             window ? builder_.getI64IntegerAttr(*window) : mlir::IntegerAttr())
      .getResult();
}

Value Builder::maskBias(Value mask) {
  const ArrayRef<int64_t> shape = shapeOf(mask);
  const Value hidden = sub(splat(shape, 1.0), toFloat(mask));
  return reshape(scale(hidden, std::numeric_limits<float>::lowest()),
                 {shape[0], 1, 1, shape[1]});
}

}  // namespace partita::huggingface
