// Axes of values, and operations element by element.
#include "frontends/stablehlo/manual/batch.h"

#include "llvm/ADT/STLExtras.h"
#include "mlir/IR/OpDefinition.h"

namespace partita::stablehlo {

Shape joinAxes(Dims a, Dims b) {
  Shape result(a);
  for (int64_t axis : b)
    if (!llvm::is_contained(result, axis)) result.push_back(axis);
  llvm::sort(result);
  return result;
}

Shape withoutAxes(Dims a, Dims b) {
  Shape result;
  for (int64_t axis : a)
    if (!llvm::is_contained(b, axis)) result.push_back(axis);
  return result;
}

Batched Batcher::get(mlir::Value local) const {
  const auto found = values_.find(local);
  // A value from outside of the body is equal on all devices.
  return found == values_.end() ? Batched{{local}} : found->second;
}

Shape Batcher::withLead(Dims of, Dims local) const {
  Shape shape;
  for (int64_t axis : of) shape.push_back(axes.sizes()[axis]);
  shape.append(local.begin(), local.end());
  return shape;
}

Batched Batcher::spread(const Batched& x, Dims to, bool folds) const {
  if (Dims(x.axes) == to) return x;
  Shape dims;
  for (int64_t axis : x.axes) dims.push_back(llvm::find(to, axis) - to.begin());
  for (size_t i = 0; i < x.localShape().size(); ++i)
    dims.push_back(static_cast<int64_t>(to.size() + i));
  const Shape shape = withLead(to, x.localShape());
  const auto constant = x.val.constant();
  if (constant && !constant.isSplat() && !folds)
    return {{nn::BroadcastOp::create(e.builder(), e.loc(),
                                     e.tensor(shape, x.val.element()),
                                     x.val.value, dims),
             x.val.is_unsigned},
            Shape(to)};
  return {e.broadcastDims(x.val, shape, dims), Shape(to)};
}

Shape Batcher::align(llvm::MutableArrayRef<Batched> values) const {
  Shape all;
  for (const Batched& value : values) all = joinAxes(all, value.axes);
  const bool folds = llvm::all_of(values, [](const Batched& value) {
    return static_cast<bool>(value.val.constant());
  });
  for (Batched& value : values) value = spread(value, all, folds);
  return all;
}

Batched Batcher::place(Batched x, llvm::ArrayRef<dist::DimAttr> local,
                       llvm::ArrayRef<dist::AxisAttr> replicated) const {
  if (!divides_ || x.val.constant()) return x;
  mlir::MLIRContext* context = e.builder().getContext();
  const auto axisOf = [&](int64_t axis) {
    return dist::AxisAttr::get(context, axes.all()[axis].name);
  };
  llvm::SmallVector<dist::DimAttr> dims;
  for (int64_t axis : x.axes)
    dims.push_back(dist::DimAttr::get(context, {axisOf(axis)}, false));
  dims.append(local.begin(), local.end());
  while (static_cast<int64_t>(dims.size()) < x.val.rank())
    dims.push_back(dist::DimAttr::get(context, llvm::ArrayRef<dist::AxisAttr>(),
                                      /*open=*/true));
  llvm::SmallVector<dist::AxisAttr> whole(replicated);
  for (size_t axis = 0; axis < axes.all().size(); ++axis)
    if (!llvm::is_contained(x.axes, axis)) whole.push_back(axisOf(axis));
  x.val.value = dist::ConstraintOp::create(
      e.builder(), e.loc(), x.val.value,
      dist::ShardingAttr::get(context, dims, whole, {}));
  return x;
}

Batched Batcher::shrink(Batched x) const {
  constexpr int64_t kMaxElements = 1 << 16;
  if (!x.val.constant() || x.val.size() > kMaxElements || x.val.size() == 0)
    return x;
  for (int64_t i = x.lead(); i-- > 0;) {
    Shape shape(x.val.shape()), dims;
    shape.erase(shape.begin() + i);
    for (int64_t dim = 0; dim < x.val.rank(); ++dim)
      if (dim != i) dims.push_back(dim);
    const Val first = e.reshape(e.sliceDim(x.val, i, 0, 1), shape);
    if (e.broadcastDims(first, x.val.shape(), dims).constant() !=
        x.val.constant())
      continue;
    x.val = first;
    x.axes.erase(x.axes.begin() + i);
  }
  return x;
}

bool Batcher::build(mlir::Operation& op) {
  e.start(op.getLoc());
  if (buildCollective(op)) return !e.failed();
  const bool is_whole = llvm::all_of(op.getOperands(), [&](mlir::Value value) {
    return get(value).axes.empty();
  });
  if (is_whole && !mlir::isa<dist::ConstraintOp>(op)) {
    mlir::IRMapping mapping;
    for (mlir::Value operand : op.getOperands())
      mapping.map(operand, get(operand).val.value);
    mlir::Operation* copy = e.builder().clone(op, mapping);
    for (auto [i, result] : llvm::enumerate(e.finish(copy)))
      values_[op.getResult(i)] = {{result}};
    return !e.failed();
  }
  if (buildMovement(op) || buildContraction(op) || buildReduction(op) ||
      buildIndexing(op) || buildElementwise(op))
    return !e.failed();
  if (!e.failed())
    e.error("shard_map: '" + op.getName().getStringRef() +
            "' on values that differ between devices is not supported");
  return false;
}

bool Batcher::buildElementwise(mlir::Operation& op) {
  if (!op.hasTrait<mlir::OpTrait::Elementwise>() && !mlir::isa<nn::TopKOp>(op))
    return false;
  llvm::SmallVector<Batched> operands;
  for (mlir::Value operand : op.getOperands()) operands.push_back(get(operand));
  const Shape all = align(operands);
  mlir::IRMapping mapping;
  for (auto [local, whole] : llvm::zip(op.getOperands(), operands))
    mapping.map(local, whole.val.value);
  mlir::Operation* copy = e.builder().clone(op, mapping);
  for (mlir::Value result : copy->getResults()) {
    const auto type = mlir::cast<mlir::RankedTensorType>(result.getType());
    result.setType(type.clone(withLead(all, type.getShape())));
  }
  for (auto [i, result] : llvm::enumerate(e.finish(copy)))
    setResult(op, {{result}, all}, static_cast<unsigned>(i));
  return true;
}

}  // namespace partita::stablehlo
