// Operators that make constants, look at shapes, or choose at import time.
#include "frontends/builder/activation.h"
#include "frontends/onnx/ops/ops.h"
#include "frontends/onnx/weight_names.h"

namespace partita::onnx {

LogicalResult importConstant(NodeContext& n) {
  if (const TensorProto* tensor = n.attrTensor("value")) {
    // Large constants stay in the file, under the output's name.
    bool is_small = elementCount(tensor->dims).value_or(0) <= 4096;
    if (!is_small) {
      auto value = n.materialize(*tensor, llvm::StringRef(n.node.outputs[0]));
      return failed(value) ? failure() : n.result(*value);
    }
    auto attr = n.decode(*tensor);
    if (failed(attr)) return failure();
    return n.result(n.e.constant(
        *attr, n.elementType(static_cast<int64_t>(tensor->type))->is_unsigned));
  }
  if (n.hasAttr("value_int"))
    return n.result(n.e.ints({n.attrInt("value_int", 0)}, {}));
  if (n.hasAttr("value_ints"))
    return n.result(n.e.ints(n.attrInts("value_ints")));
  if (n.hasAttr("value_float"))
    return n.result(n.e.splat(n.attrFloat("value_float", 0), n.e.f32()));
  if (n.hasAttr("value_floats")) {
    auto values = n.attrFloats("value_floats");
    return n.result(
        n.e.reals(values, {static_cast<int64_t>(values.size())}, n.e.f32()));
  }
  for (const Attribute& attribute : n.node.attributes)
    return n.unsupported(llvm::StringRef(attribute.name));
  return n.error("expected a value");
}

LogicalResult importConstantOfShape(NodeContext& n) {
  auto shape = n.constInts(0);
  if (failed(shape)) return failure();
  const TensorProto* tensor = n.attrTensor("value");
  if (!tensor) return n.result(n.e.splat(0, n.e.f32(), *shape));
  auto attr = n.decode(*tensor);
  if (failed(attr)) return failure();
  if (attr->getNumElements() != 1)
    return n.error("expected a value of one element");
  bool is_unsigned =
      n.elementType(static_cast<int64_t>(tensor->type))->is_unsigned;
  return n.result(
      n.e.broadcast(n.e.reshape(n.e.constant(*attr, is_unsigned), {}), *shape));
}

LogicalResult importShape(NodeContext& n) {
  Val x = n.in(0);
  auto clamp = [&](int64_t i) {
    return std::clamp<int64_t>(i < 0 ? i + x.rank() : i, 0, x.rank());
  };
  int64_t start = clamp(n.attrInt("start", 0)),
          end = clamp(n.attrInt("end", x.rank()));
  return n.result(
      n.e.ints(x.shape().slice(start, std::max<int64_t>(end - start, 0))));
}

LogicalResult importSize(NodeContext& n) {
  return n.result(n.e.ints({n.in(0).size()}, {}));
}

LogicalResult importIdentity(NodeContext& n) {
  // The older exporter shares equal initial values through Identity. They are
  // still separate weights. The newer one writes `alias` and `clone` this way.
  if (n.wants(0) && !isTracedOperation(n.node)) {
    if (Val separate =
            n.separateInitializer(0, llvm::StringRef(n.node.outputs[0])))
      return n.result(separate);
  }
  return n.result(n.in(0));
}

LogicalResult importRange(NodeContext& n) {
  ElementType type = n.in(0).elementType();
  for (unsigned i : {1, 2}) {
    if (!(n.in(i).elementType() == type))
      return n.error("expected start, limit and delta of one type");
  }
  if (!mlir::isa<mlir::FloatType>(type.type)) {
    auto start = n.constInts(0), limit = n.constInts(1), delta = n.constInts(2);
    if (failed(start) || failed(limit) || failed(delta)) return failure();
    if (start->size() != 1 || limit->size() != 1 || delta->size() != 1 ||
        (*delta)[0] == 0) {
      return n.error("expected scalars, delta not 0");
    }
    // 128 bits cannot overflow.
    __int128 span = static_cast<__int128>((*limit)[0]) - (*start)[0],
             step = (*delta)[0];
    __int128 count =
        span / step + (span % step != 0 && (span < 0) == (step < 0) ? 1 : 0);
    int64_t size =
        static_cast<int64_t>(std::clamp<__int128>(count, 0, int64_t{1} << 40));
    Val index = {n.e.iota({size}, 0, type.type).value, type.is_unsigned};
    Val step_value = n.e.reshape(n.in(2), {}),
        start_value = n.e.reshape(n.in(0), {});
    return n.result(n.e.add(n.e.mul(index, step_value), start_value));
  }
  auto start = n.constFloat(0), limit = n.constFloat(1),
       delta = n.constFloat(2);
  if (failed(start) || failed(limit) || failed(delta)) return failure();
  double count = std::max(std::ceil((*limit - *start) / *delta), 0.0);
  if (!(count < 1e12))
    return n.error("expected a delta other than 0 and finite limits");
  Val index = n.e.iota({static_cast<int64_t>(count)}, 0, n.e.f32());
  Val values = n.e.add(n.e.mul(index, *delta), *start);
  if (type.type.isF64()) {
    index = n.e.iota({static_cast<int64_t>(count)}, 0, type.type);
    values = n.e.add(n.e.mul(index, *delta), *start);
  }
  return n.result(n.e.cast(values, type));
}

LogicalResult importEyeLike(NodeContext& n) {
  Val x = n.in(0);
  if (x.rank() != 2) return n.error("expected an input of rank 2");
  ElementType type = x.elementType();
  if (n.hasAttr("dtype")) {
    auto given = n.elementType(n.attrInt("dtype", 1));
    if (failed(given)) return failure();
    type = *given;
  }
  Val row = n.e.iota(x.shape(), 0, n.e.i64()),
      column = n.e.iota(x.shape(), 1, n.e.i64());
  Val diagonal =
      n.e.compare(Compare::eq,
                  n.e.add(row, static_cast<double>(n.attrInt("k", 0))), column);
  return n.result(n.e.cast(diagonal, type));
}

LogicalResult importOneHot(NodeContext& n) {
  Val indices = n.in(0), values = n.in(2);
  // The depth may have any numeric type.
  auto depth = n.constFloat(1);
  auto axis = n.axis(n.attrInt("axis", -1), indices.rank() + 1);
  if (failed(depth) || failed(axis)) return failure();
  if (*depth < 0 || *depth > 1e12 || values.rank() != 1 || values.dim(0) != 2) {
    return n.error("expected a depth that is not negative, and two values");
  }
  Shape shape(indices.shape()), with_one(indices.shape());
  int64_t size = static_cast<int64_t>(*depth);
  shape.insert(shape.begin() + *axis, size);
  with_one.insert(with_one.begin() + *axis, 1);
  Val index = n.e.wrapIndices(n.e.cast(indices, n.e.i64()), size);
  Val hit = n.e.compare(Compare::eq, n.e.reshape(index, with_one),
                        n.e.iota(shape, *axis, n.e.i64()));
  Val off = n.e.reshape(n.e.sliceDim(values, 0, 0, 1), {}),
      on = n.e.reshape(n.e.sliceDim(values, 0, 1, 1), {});
  return n.result(n.e.select(hit, on, off));
}

LogicalResult importDropout(NodeContext& n) {
  Val x = n.in(0);
  bool is_training = n.opset < 7 && n.attrInt("is_test", 0) == 0;
  double ratio = n.attrFloat("ratio", 0.5);
  if (n.opset >= 12 && n.has(2)) {
    auto training = n.constInts(2);
    if (failed(training)) return failure();
    is_training = training->size() == 1 && (*training)[0] != 0;
  }
  if (is_training && n.has(1)) {
    auto given = n.constFloat(1);
    if (failed(given)) return failure();
    ratio = *given;
  }
  if (is_training && ratio != 0) {
    if (!(ratio > 0 && ratio < 1))
      return n.error("expected a ratio from 0 to below 1, found " +
                     std::to_string(ratio));
    Val kept;
    n.out(0, builder::dropout(n.e, x, ratio, n.nextSeed(), &kept));
    n.out(1, n.opset >= 10 ? kept : n.e.cast(kept, x.elementType()));
    return success();
  }
  n.out(0, x);
  n.out(1, n.e.splat(1,
                     n.opset >= 10 ? mlir::Type(n.e.builder().getI1Type())
                                   : x.element(),
                     x.shape()));
  return success();
}

LogicalResult importIf(NodeContext& n) {
  if (!n.isConstant(0))
    return n.unsupported("condition that depends on inputs");
  auto condition = n.constInts(0);
  if (failed(condition)) return failure();
  const Graph* branch =
      n.attrGraph(!condition->empty() && (*condition)[0] != 0 ? "then_branch"
                                                              : "else_branch");
  if (!branch) return n.error("expected branches");
  auto results = n.inlineGraph(*branch);
  if (failed(results)) return failure();
  for (auto [i, value] : llvm::enumerate(*results)) n.out(i, value);
  return success();
}

}  // namespace partita::onnx
