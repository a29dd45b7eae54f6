// Collectives of a manual computation's body, as operations on leading
// dimensions.
#include "frontends/stablehlo/manual/batch.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::stablehlo {
namespace {

int64_t placeOf(Dims axes, int64_t axis) {
  return llvm::find(axes, axis) - axes.begin();
}

}  // namespace

Batched Batcher::allReduce(const Batched& x, nn::ReduceKind kind,
                           Dims over) const {
  Shape dims;
  for (int64_t axis : over)
    if (llvm::is_contained(x.axes, axis)) dims.push_back(placeOf(x.axes, axis));
  // Devices with equal values add that value several times.
  const int64_t copies = axes.sizeOf(withoutAxes(over, x.axes));
  Val result = e.reduce(kind, x.val, dims, /*keep_dims=*/false);
  if (kind == nn::ReduceKind::sum && copies > 1)
    result = e.mul(result, static_cast<double>(copies));
  if (kind == nn::ReduceKind::prod) {
    const Val one = result;
    for (int64_t i = 1; i < copies; ++i) result = e.mul(result, one);
  }
  return {result, withoutAxes(x.axes, over)};
}

// Gathered dimensions: members of a group one after another.
Batched Batcher::allGather(const Batched& input, const Collective& c) const {
  const Batched x = spread(input, joinAxes(input.axes, c.axes));
  const Shape kept = withoutAxes(x.axes, c.axes);
  Shape perm, shape(x.localShape());
  for (int64_t axis : kept) perm.push_back(placeOf(x.axes, axis));
  for (int64_t dim = 0; dim < static_cast<int64_t>(shape.size()); ++dim) {
    if (dim == c.dim)
      for (int64_t axis : c.axes) perm.push_back(placeOf(x.axes, axis));
    perm.push_back(x.lead() + dim);
  }
  shape[c.dim] *= axes.sizeOf(c.axes);
  return place(
      {e.reshape(e.transpose(x.val, perm), withLead(kept, shape)), kept});
}

// A sum whose parts become entries of leading dimensions again. No device needs
// the whole sum.
Batched Batcher::reduceScatter(const Batched& x, const Collective& c) const {
  const Batched sum = allReduce(x, c.reduction, c.axes);
  Shape split, perm, shape(sum.localShape());
  const int64_t members = axes.sizeOf(c.axes);
  for (int64_t dim = 0; dim < static_cast<int64_t>(shape.size()); ++dim) {
    if (dim == c.dim) {
      for (int64_t axis : c.axes) split.push_back(axes.sizes()[axis]);
      shape[dim] /= members;
    }
    split.push_back(shape[dim]);
  }
  const Val parts = e.reshape(sum.val, withLead(sum.axes, split));
  const Shape all = joinAxes(sum.axes, c.axes);
  for (int64_t axis : all)
    perm.push_back(llvm::is_contained(sum.axes, axis)
                       ? placeOf(sum.axes, axis)
                       : sum.lead() + c.dim + placeOf(c.axes, axis));
  for (int64_t dim = 0; dim < parts.rank(); ++dim)
    if (!llvm::is_contained(perm, dim)) perm.push_back(dim);
  return place({e.transpose(parts, perm), all});
}

// Each device cuts its value into a part per member, and receives one part of
// each.
Batched Batcher::allToAll(const Batched& input, const Collective& c) const {
  const Batched x = spread(input, joinAxes(input.axes, c.axes));
  const int64_t members = axes.sizeOf(c.axes),
                count = static_cast<int64_t>(c.axes.size());
  Shape split, shape(x.localShape());
  const int64_t rank = static_cast<int64_t>(shape.size());
  for (int64_t dim = 0; dim < rank; ++dim) {
    if (dim == c.dim) {
      for (int64_t axis : c.axes) split.push_back(axes.sizes()[axis]);
      shape[dim] /= members;
    }
    split.push_back(shape[dim]);
  }
  const Val parts = e.reshape(x.val, withLead(x.axes, split));
  // Places of receivers, and of local dimensions.
  const auto receiver = [&](int64_t axis) {
    return x.lead() + c.dim + placeOf(c.axes, axis);
  };
  const auto local = [&](int64_t dim) {
    return x.lead() + dim + (dim >= c.dim ? count : 0);
  };
  Shape perm;
  for (int64_t axis : x.axes)
    perm.push_back(llvm::is_contained(c.axes, axis) ? receiver(axis)
                                                    : placeOf(x.axes, axis));
  for (int64_t dim = 0; dim < rank; ++dim) {
    if (dim == c.concat_dim)
      for (int64_t axis : c.axes) perm.push_back(placeOf(x.axes, axis));
    perm.push_back(local(dim));
  }
  shape[c.concat_dim] *= members;
  return place(
      {e.reshape(e.transpose(parts, perm), withLead(x.axes, shape)), x.axes});
}

// Rotations along the members of a group, one for each distance, and zeros
// where nothing arrives.
Batched Batcher::permute(const Batched& input, const Collective& c) const {
  const Batched x = spread(input, joinAxes(input.axes, c.axes));
  const int64_t members = static_cast<int64_t>(c.sources.size());
  Shape perm;
  for (int64_t axis : c.axes) perm.push_back(placeOf(x.axes, axis));
  for (int64_t dim = 0; dim < x.val.rank(); ++dim)
    if (!llvm::is_contained(perm, dim)) perm.push_back(dim);
  const Val moved = e.transpose(x.val, perm);
  Shape joined = {members};
  for (int64_t dim : Dims(perm).drop_front(c.axes.size()))
    joined.push_back(x.val.dim(dim));
  const Val from = e.reshape(moved, joined);
  Val result;
  for (int64_t distance = 0; distance < members; ++distance) {
    Shape indices;
    llvm::SmallVector<bool> arrives;
    for (int64_t to = 0; to < members; ++to) {
      const int64_t source = (to - distance + members) % members;
      indices.push_back(source);
      arrives.push_back(c.sources[to] == source);
    }
    if (!llvm::is_contained(arrives, true)) continue;
    const Val rotated =
        distance == 0 ? from
                      : e.gather(from, e.ints(indices, {members, 1}), {0});
    if (!result && !llvm::is_contained(arrives, false)) {
      result = rotated;
      break;
    }
    if (!result) result = e.splatLike(0, rotated);
    Shape ones(rotated.rank(), 1);
    ones[0] = members;
    result =
        e.select(e.reshape(e.bools(arrives, {members}), ones), rotated, result);
  }
  if (!result) result = e.splatLike(0, from);
  return place({e.transpose(e.reshape(result, moved.shape()),
                            builder::inversePermutation(perm)),
                x.axes});
}

Batched Batcher::partitionId() const {
  const Shape all = builder::countUp(static_cast<int64_t>(axes.all().size()));
  llvm::SmallVector<int32_t> numbers;
  for (int64_t device : axes.deviceNumbers())
    numbers.push_back(static_cast<int32_t>(device));
  const auto type = e.tensor(withLead(all, {}), e.builder().getI32Type());
  return {e.constant(mlir::DenseElementsAttr::get(
                         type, llvm::ArrayRef<int32_t>(numbers)),
                     /*is_unsigned=*/true),
          all};
}

bool Batcher::buildCollective(mlir::Operation& op) {
  if (!mlir::isa<mlir::UnrealizedConversionCastOp>(op)) return false;
  const auto number = op.getAttrOfType<mlir::IntegerAttr>(kCollectiveAttr);
  const Collective& c = axes.collectives[number.getInt()];
  if (c.kind == Collective::Kind::kPartitionId) {
    setResult(op, partitionId());
    return true;
  }
  Batched x = get(op.getOperand(0));
  x.val.is_unsigned = c.is_unsigned;
  switch (c.kind) {
    case Collective::Kind::kAllReduce:
      setResult(op, place(allReduce(x, c.reduction, c.axes)));
      break;
    case Collective::Kind::kAllGather:
      setResult(op, allGather(x, c));
      break;
    case Collective::Kind::kReduceScatter:
      setResult(op, reduceScatter(x, c));
      break;
    case Collective::Kind::kAllToAll:
      setResult(op, allToAll(x, c));
      break;
    default:
      setResult(op, permute(x, c));
  }
  return true;
}

}  // namespace partita::stablehlo
