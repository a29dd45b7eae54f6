// Gather and scatter in all of ONNX's forms, mapped to nn.gather and
// nn.scatter.
#include "frontends/builder/indexing.h"

#include "frontends/onnx/ops/ops.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

namespace partita::onnx {
namespace {

FailureOr<nn::ScatterKind> scatterKind(NodeContext& n) {
  std::string reduction = n.attrString("reduction", "none");
  auto kind = llvm::StringSwitch<std::optional<nn::ScatterKind>>(reduction)
                  .Case("none", nn::ScatterKind::set)
                  .Case("add", nn::ScatterKind::add)
                  .Case("mul", nn::ScatterKind::mul)
                  .Case("max", nn::ScatterKind::max)
                  .Case("min", nn::ScatterKind::min)
                  .Default(std::nullopt);
  if (!kind) return n.unsupported("reduction=" + reduction);
  bool compares =
      *kind == nn::ScatterKind::max || *kind == nn::ScatterKind::min;
  if (compares && n.in(0).is_unsigned)
    return n.unsupported("reduction=" + reduction + " of unsigned integers");
  return *kind;
}

// Adds the sizes to negative components of index vectors.
Val wrapVectors(NodeContext& n, Val indices, Dims sizes) {
  Val wide = n.e.cast(indices, n.e.i64());
  return n.e.select(n.e.compare(Compare::lt, wide, 0.0),
                    n.e.add(wide, n.e.ints(sizes)), wide);
}

LogicalResult checkElements(NodeContext& n, Val x, Val indices) {
  bool fits = x.rank() == indices.rank() && x.rank() > 0;
  return fits ? success()
              : n.error("expected indices of the data's rank, 1 or more");
}

LogicalResult requireInts(NodeContext& n, Val indices) {
  return indices.isFloat() ? n.error("expected indices to be integers")
                           : success();
}

}  // namespace

LogicalResult importGather(NodeContext& n) {
  Val x = n.in(0), indices = n.in(1);
  auto axis = n.axis(n.attrInt("axis", 0), x.rank());
  if (failed(axis) || failed(requireInts(n, indices))) return failure();
  return n.result(builder::take(n.e, x, indices, *axis));
}

LogicalResult importGatherElements(NodeContext& n) {
  Val x = n.in(0), indices = n.in(1);
  auto axis = n.axis(n.attrInt("axis", 0), x.rank());
  if (failed(axis) || failed(checkElements(n, x, indices)) ||
      failed(requireInts(n, indices)))
    return failure();
  return n.result(builder::gatherElements(n.e, x, indices, *axis));
}

LogicalResult importScatterElements(NodeContext& n) {
  Val x = n.in(0), indices = n.in(1), updates = n.in(2);
  auto axis = n.axis(n.attrInt("axis", 0), x.rank());
  auto kind = scatterKind(n);
  if (failed(axis) || failed(kind) || failed(checkElements(n, x, indices)) ||
      failed(requireInts(n, indices))) {
    return failure();
  }
  return n.result(
      builder::scatterElements(n.e, x, indices, updates, *axis, *kind));
}

LogicalResult importGatherNd(NodeContext& n) {
  Val x = n.in(0), indices = n.in(1);
  int64_t batch_dims = n.attrInt("batch_dims", 0);
  if (failed(requireInts(n, indices))) return failure();
  if (batch_dims < 0 || indices.rank() < 1 || batch_dims >= indices.rank())
    return n.error("expected fewer batch_dims");
  int64_t depth = indices.dim(indices.rank() - 1);
  if (batch_dims + depth > x.rank())
    return n.error("expected index vectors no longer than the data's rank");
  Shape axes;
  for (int64_t i = 0; i < depth; ++i) axes.push_back(batch_dims + i);
  Val wrapped = wrapVectors(n, indices, x.shape().slice(batch_dims, depth));
  return n.result(n.e.gather(x, wrapped, axes, batch_dims));
}

LogicalResult importScatterNd(NodeContext& n) {
  Val x = n.in(0), indices = n.in(1), updates = n.in(2);
  auto kind = scatterKind(n);
  if (failed(kind) || failed(requireInts(n, indices))) return failure();
  int64_t depth = indices.rank() > 0 ? indices.dim(indices.rank() - 1) : 0;
  if (indices.rank() < 1 || depth > x.rank())
    return n.error("expected index vectors no longer than the data's rank");
  Val wrapped = wrapVectors(n, indices, x.shape().take_front(depth));
  return n.result(n.e.scatter(x, wrapped, updates, countUp(depth), *kind));
}

LogicalResult importCompress(NodeContext& n) {
  Val x = n.in(0);
  auto condition = n.constInts(1);
  if (failed(condition)) return failure();
  int64_t axis = 0;
  if (n.hasAttr("axis")) {
    auto given = n.axis(n.attrInt("axis", 0), x.rank());
    if (failed(given)) return failure();
    axis = *given;
  } else {
    x = n.e.reshape(x, {x.size()});
  }
  llvm::SmallVector<Val> parts;
  for (auto [i, keep] : llvm::enumerate(*condition)) {
    if (keep && static_cast<int64_t>(i) < x.dim(axis))
      parts.push_back(n.e.sliceDim(x, axis, i, 1));
  }
  return n.result(parts.empty() ? n.e.sliceDim(x, axis, 0, 0)
                                : n.e.concat(parts, axis));
}

LogicalResult importReverseSequence(NodeContext& n) {
  Val x = n.in(0), lengths = n.in(1);
  int64_t batch_axis = n.attrInt("batch_axis", 1),
          time_axis = n.attrInt("time_axis", 0);
  if (x.rank() < 2 || batch_axis + time_axis != 1)
    return n.error("expected a batch and a time axis, 0 and 1");
  if (lengths.rank() != 1 || lengths.dim(0) != x.dim(batch_axis))
    return n.error("expected one length per batch entry");
  Shape perm = countUp(x.rank());
  std::swap(perm[0], perm[batch_axis]);
  Val batched = n.e.transpose(x, perm);
  Shape grid = {batched.dim(0), batched.dim(1)};
  // Within a sequence of length l, step t comes from step l - 1 - t. Steps
  // after the sequence are unchanged.
  Val time = n.e.iota(grid, 1, n.e.i64());
  Val length = n.e.reshape(n.e.cast(lengths, n.e.i64()), {grid[0], 1});
  Val source = n.e.select(n.e.compare(Compare::lt, time, length),
                          n.e.sub(n.e.sub(length, 1), time), time);
  Val gathered =
      n.e.gather(batched, n.e.reshape(source, {grid[0], grid[1], 1}), {1}, 1);
  return n.result(n.e.transpose(gathered, perm));
}

LogicalResult importTensorScatter(NodeContext& n) {
  Val cache = n.in(0), update = n.in(1);
  auto axis = n.axis(n.attrInt("axis", -2), cache.rank());
  if (failed(axis)) return failure();
  if (*axis == 0 || update.rank() != cache.rank())
    return n.error("expected an update of the cache's rank, axis not 0");
  // Layout [batch, sequence, rest]: entry s of batch b goes to position
  // write_indices[b] + s.
  Shape perm = countUp(cache.rank());
  perm.erase(perm.begin() + *axis);
  perm.insert(perm.begin() + 1, *axis);
  Val moved = n.e.transpose(cache, perm),
      moved_update = n.e.transpose(update, perm);
  Shape grid = {moved_update.dim(0), moved_update.dim(1)};
  Val position = n.e.iota(grid, 1, n.e.i64());
  if (n.has(2))
    position = n.e.add(position,
                       n.e.reshape(n.e.cast(n.in(2), n.e.i64()), {grid[0], 1}));
  std::string mode = n.attrString("mode", "linear");
  if (mode == "circular") {
    position = n.e.remainder(
        position, n.e.splat(static_cast<double>(moved.dim(1)), n.e.i64()));
  } else if (mode != "linear") {
    return n.unsupported("mode=" + mode);
  }
  Val indices = n.e.reshape(position, {grid[0], grid[1], 1});
  Val result =
      n.e.scatter(moved, indices, moved_update, {1}, nn::ScatterKind::set, 1);
  return n.result(n.e.transpose(result, builder::inversePermutation(perm)));
}

// The number of nonzero elements is a shape. If it depends on the model's
// inputs, rows at these indices must come together again (chosen_rows.h).
LogicalResult importNonZero(NodeContext& n) {
  if (!n.isConstant(0) && n.in(0).rank() > 0 && n.in(0).size() > 0)
    return n.result(n.chooseRows(n.in(0)));
  auto values = n.constFloats(0);
  if (failed(values)) return failure();
  Dims shape = n.in(0).shape();
  int64_t rank = shape.size();
  llvm::SmallVector<Shape> found;
  for (auto [position, value] : llvm::enumerate(*values)) {
    if (value != 0) found.push_back(nn::indexAt(shape, position));
  }
  Shape indices;
  for (int64_t dim = 0; dim < rank; ++dim) {
    for (const Shape& index : found) indices.push_back(index[dim]);
  }
  return n.result(
      n.e.ints(indices, {rank, static_cast<int64_t>(found.size())}));
}

}  // namespace partita::onnx
