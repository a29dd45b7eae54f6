// Operators that make tensors from numbers.
#include <cmath>

#include "frontends/torch/ops/ops.h"

namespace partita::torch {
namespace {

Val filled(NodeContext& n, Dims shape) {
  const ElementType type = n.resultType();
  Val value = n.has("fill_value") ? n.operand("fill_value", type)
              : n.has("value") ? n.operand("value", type)
                               : n.e.splat(n.op.contains("ones") ? 1 : 0, type);
  if (n.failed()) return {};
  if (value.rank() != 0) value = n.e.reshape(value, {});
  // Checks the shape before it is used.
  (void)n.e.tensor(shape, type.type);
  return n.failed() ? Val() : n.e.broadcast(value, shape);
}

}  // namespace

Val importArange(NodeContext& n) {
  Emitter& e = n.e;
  const ElementType type = n.resultType();
  constexpr double kMaxCount = 1e12;
  if (!mlir::isa<mlir::FloatType>(type.type)) {
    const int64_t start = n.integer("start", 0), end = n.integer("end"),
                  step = n.integer("step", 1);
    if (n.failed()) return {};
    if (step == 0) return n.error("expected a step other than 0");
    // 128 bits cannot overflow.
    const __int128 span = static_cast<__int128>(end) - start;
    __int128 count = span / step;
    if (span % step != 0 && (span < 0) == (step < 0)) ++count;
    if (count < 0) count = 0;
    if (count > static_cast<__int128>(kMaxCount))
      return n.error("expected less than 10^12 elements");
    Val index = {e.iota({static_cast<int64_t>(count)}, 0, type.type).value,
                 type.is_unsigned};
    if (step != 1) index = e.mul(index, e.cast(e.ints({step}, {}), type));
    return start == 0 ? index : e.add(index, e.cast(e.ints({start}, {}), type));
  }
  const double start = n.number("start", 0), end = n.number("end"),
               step = n.number("step", 1);
  if (n.failed()) return {};
  const double count = std::max(std::ceil((end - start) / step), 0.0);
  if (!(count < kMaxCount))
    return n.error("expected finite limits and a step other than 0");
  const mlir::Type exact = type.type.isF64() ? type.type : e.f32();
  Val values = e.iota({static_cast<int64_t>(count)}, 0, exact);
  if (step != 1) values = e.mul(values, step);
  if (start != 0) values = e.add(values, start);
  return e.cast(values, type);
}

Val importFull(NodeContext& n) {
  const Shape shape = n.ints("size");
  return n.failed() ? Val() : filled(n, shape);
}

Val importFillLike(NodeContext& n) {
  Val x = n.tensor("self");
  return n.failed() ? Val() : filled(n, x.shape());
}

Val importScalarTensor(NodeContext& n) {
  return n.operand(n.has("s") ? "s" : "data", n.resultType());
}

Val importEye(NodeContext& n) {
  const ElementType type = n.resultType();
  const int64_t rows = n.integer("n"), columns = n.integer("m", rows);
  if (n.failed()) return {};
  const Shape shape = {rows, columns};
  (void)n.e.tensor(shape, type.type);
  if (n.failed()) return {};
  Val diagonal = n.e.compare(Compare::eq, n.e.iota(shape, 0, n.e.i64()),
                             n.e.iota(shape, 1, n.e.i64()));
  return n.e.cast(diagonal, type);
}

Val importLinspace(NodeContext& n) {
  const ElementType type = n.resultType();
  const double start = n.number("start"), end = n.number("end");
  const int64_t steps = n.integer("steps");
  if (n.failed()) return {};
  constexpr int64_t kMaxSteps = 1 << 20;
  if (steps < 0 || steps > kMaxSteps || !mlir::isa<mlir::FloatType>(type.type))
    return n.unsupported("a range of integers or of over 2^20 steps");
  llvm::SmallVector<double> values;
  for (int64_t i = 0; i < steps; ++i)
    values.push_back(steps == 1
                         ? start
                         : start + (end - start) * static_cast<double>(i) /
                                       static_cast<double>(steps - 1));
  return n.e.reals(values, {steps}, type.type);
}

Val importRandom(NodeContext& n) {
  Emitter& e = n.e;
  const ElementType type = n.resultType();
  const bool is_normal = n.op.contains("randn");
  const Shape shape =
      n.has("size") ? n.ints("size") : Shape(n.tensor("self").shape());
  if (n.failed()) return {};
  const mlir::RankedTensorType random = e.tensor(shape, e.f32());
  if (n.failed()) return {};
  Val values = {e.create<nn::RandomOp>(
      random, is_normal ? nn::Distribution::normal : nn::Distribution::uniform,
      n.nextSeed().value)};
  if (n.op == "aten.bernoulli") {
    // Files leave out a `p` that is the default of the overload.
    Val ratio = n.has("p")              ? n.operand("p", {e.f32()})
                : n.overload == "float" ? e.splatLike(0.5, values)
                                        : e.cast(n.tensor("self"), e.f32());
    if (n.failed()) return {};
    values = e.compare(Compare::lt, values, ratio);
  }
  return e.cast(values, type);
}

}  // namespace partita::torch
