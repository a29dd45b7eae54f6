// Products and convolutions in a manual computation's body.
#include "frontends/builder/window.h"
#include "frontends/stablehlo/manual/batch.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::stablehlo {
namespace {

Shape shifted(int64_t by, Dims dims) {
  Shape result;
  for (int64_t dim : dims) result.push_back(dim + by);
  return result;
}

// Axes of both factors are batch dimensions; those of one are free.
Batched dot(Batcher& b, nn::DotGeneralOp op) {
  const Batched x = b.get(op.getLhs()), w = b.get(op.getRhs());
  Shape x_batch, w_batch, shared;
  for (auto [i, axis] : llvm::enumerate(x.axes)) {
    const auto* found = llvm::find(w.axes, axis);
    if (found == w.axes.end()) continue;
    shared.push_back(axis);
    x_batch.push_back(static_cast<int64_t>(i));
    w_batch.push_back(found - w.axes.begin());
  }
  x_batch.append(shifted(x.lead(), op.getLhsBatch()));
  w_batch.append(shifted(w.lead(), op.getRhsBatch()));
  const Val product = b.e.dot(x.val, w.val, x_batch, w_batch,
                              shifted(x.lead(), op.getLhsContract()),
                              shifted(w.lead(), op.getRhsContract()));
  if (b.e.failed()) return {};
  // The result has shared axes, local batch dimensions, axes of x, its free
  // dimensions, axes of w, its free dimensions.
  const Shape x_only = withoutAxes(x.axes, shared),
              w_only = withoutAxes(w.axes, shared),
              all = joinAxes(x.axes, w.axes);
  const int64_t batch = op.getLhsBatch().size();
  const int64_t x_free = static_cast<int64_t>(x.localShape().size()) - batch -
                         static_cast<int64_t>(op.getLhsContract().size());
  const int64_t first_x = shared.size() + batch,
                first_w = first_x + x_only.size() + x_free;
  Shape perm;
  for (int64_t axis : all) {
    if (const auto* i = llvm::find(shared, axis); i != shared.end())
      perm.push_back(i - shared.begin());
    else if (const auto* j = llvm::find(x_only, axis); j != x_only.end())
      perm.push_back(first_x + (j - x_only.begin()));
    else
      perm.push_back(first_w + (llvm::find(w_only, axis) - w_only.begin()));
  }
  for (int64_t dim = 0; dim < product.rank(); ++dim)
    if (!llvm::is_contained(perm, dim)) perm.push_back(dim);
  return {b.e.transpose(product, perm), all};
}

// Moves leading dimensions beside dimension `dim` of the local value, and joins
// them with it.
Val joinInto(Batcher& b, const Batched& x, int64_t dim) {
  const int64_t lead = x.lead();
  Shape perm, shape;
  for (int64_t i = 0; i < dim; ++i) perm.push_back(lead + i);
  for (int64_t i = 0; i < lead; ++i) perm.push_back(i);
  for (int64_t i = lead + dim; i < x.val.rank(); ++i) perm.push_back(i);
  shape = Shape(x.localShape());
  shape[dim] *= b.axes.sizeOf(x.axes);
  return b.e.reshape(b.e.transpose(x.val, perm), shape);
}

// The inverse.
Batched splitFrom(Batcher& b, Val joined, int64_t dim, Dims axes) {
  const int64_t lead = static_cast<int64_t>(axes.size());
  Shape shape, perm;
  for (int64_t i = 0; i < joined.rank(); ++i) {
    if (i != dim) {
      shape.push_back(joined.dim(i));
      continue;
    }
    for (int64_t axis : axes) shape.push_back(b.axes.sizes()[axis]);
    shape.push_back(joined.dim(i) / b.axes.sizeOf(axes));
  }
  for (int64_t i = 0; i < lead; ++i) perm.push_back(dim + i);
  for (int64_t i = 0; i < static_cast<int64_t>(shape.size()); ++i)
    if (i < dim || i >= dim + lead) perm.push_back(i);
  return {b.e.transpose(b.e.reshape(joined, shape), perm), Shape(axes)};
}

// Entries of a divided input are more rows of the batch. With divided weights,
// they are groups of channels.
Batched convolve(Batcher& b, nn::ConvOp op) {
  Batched operands[] = {b.get(op.getInput()), b.get(op.getWeight())};
  const bool has_weights = !operands[1].axes.empty();
  const Shape all = has_weights ? b.align(operands) : operands[0].axes;
  const Val x = joinInto(b, operands[0], has_weights ? 1 : 0),
            w = has_weights ? joinInto(b, operands[1], 0) : operands[1].val;
  builder::Window window;
  window.strides = Shape(op.getStrides());
  window.dilations = Shape(op.getDilations());
  window.low = Shape(op.getLow());
  window.high = Shape(op.getHigh());
  window.kernel = Shape(w.shape().drop_front(2));
  const int64_t groups = static_cast<int64_t>(op.getGroups()) *
                         (has_weights ? b.axes.sizeOf(all) : 1);
  const Val y = builder::convolve(b.e, x, w, window, groups);
  return b.e.failed() ? Batched() : splitFrom(b, y, has_weights ? 1 : 0, all);
}

}  // namespace

bool Batcher::buildContraction(mlir::Operation& op) {
  if (auto product = mlir::dyn_cast<nn::DotGeneralOp>(op)) {
    setResult(op, dot(*this, product));
    return true;
  }
  auto conv = mlir::dyn_cast<nn::ConvOp>(op);
  if (!conv || conv.getChannelsLast()) return false;
  setResult(op, convolve(*this, conv));
  return true;
}

}  // namespace partita::stablehlo
