#include "frontends/builder/indexing.h"

#include <optional>

namespace partita::builder {
namespace {

// Constant, equally spaced indices are a slice.
std::optional<Val> takeAsSlice(Emitter& e, Val x, Val indices, int64_t axis) {
  mlir::DenseElementsAttr attr = indices.constant();
  if (!attr || attr.empty() || indices.rank() > 1) return std::nullopt;
  Shape values;
  for (const llvm::APInt& value : attr.getValues<llvm::APInt>()) {
    values.push_back(indices.is_unsigned
                         ? static_cast<int64_t>(value.getZExtValue())
                         : value.getSExtValue());
    if (values.back() < 0) values.back() += x.dim(axis);
    if (values.back() < 0 || values.back() >= x.dim(axis)) return std::nullopt;
  }
  int64_t stride = values.size() > 1 ? values[1] - values[0] : 1;
  for (size_t i = 1; i < values.size(); ++i) {
    if (values[i] - values[i - 1] != stride) return std::nullopt;
  }
  if (stride == 0) return std::nullopt;
  Val taken = e.sliceDim(x, axis, values[0], values.size(), stride);
  if (indices.rank() == 1) return taken;
  Shape shape(x.shape());
  shape.erase(shape.begin() + axis);
  return e.reshape(taken, shape);
}

// Index vectors over all dimensions for every element of `indices`; component
// `axis` is the given index.
Val fullIndices(Emitter& e, Val indices, int64_t axis) {
  llvm::SmallVector<Val> parts;
  for (int64_t i = 0; i < indices.rank(); ++i) {
    Val part =
        i == axis ? indices : e.iota(indices.shape(), i, indices.element());
    parts.push_back(withOne(e, part));
  }
  return e.concat(parts, indices.rank());
}

}  // namespace

Val withOne(Emitter& e, Val x) {
  Shape shape(x.shape());
  shape.push_back(1);
  return e.reshape(x, shape);
}

Val take(Emitter& e, Val x, Val indices, int64_t axis) {
  if (auto slice = takeAsSlice(e, x, indices, axis)) return *slice;
  Val wrapped = e.wrapIndices(indices, x.dim(axis));
  Val gathered = e.gather(x, withOne(e, wrapped), {axis});
  // nn.gather puts the indices' dimensions first; here they replace the axis.
  Shape perm;
  int64_t rank = indices.rank();
  for (int64_t i = 0; i < axis; ++i) perm.push_back(rank + i);
  for (int64_t i = 0; i < rank; ++i) perm.push_back(i);
  for (int64_t i = axis + 1; i < x.rank(); ++i) perm.push_back(rank + i - 1);
  return e.transpose(gathered, perm);
}

Val gatherElements(Emitter& e, Val x, Val indices, int64_t axis) {
  Val wrapped = e.wrapIndices(indices, x.dim(axis));
  // The other dimensions become batch dimensions once their sizes agree; the
  // axis goes last.
  Shape sizes(indices.shape());
  sizes[axis] = x.dim(axis);
  Val part = e.slice(x, Shape(x.rank(), 0), sizes, Shape(x.rank(), 1));
  Shape perm = countUp(x.rank());
  perm.erase(perm.begin() + axis);
  perm.push_back(axis);
  Val moved = e.transpose(wrapped, perm);
  Val gathered = e.gather(e.transpose(part, perm), withOne(e, moved),
                          {x.rank() - 1}, x.rank() - 1);
  return e.transpose(gathered, inversePermutation(perm));
}

Val scatterElements(Emitter& e, Val x, Val indices, Val updates, int64_t axis,
                    nn::ScatterKind kind) {
  Val full = fullIndices(e, e.wrapIndices(indices, x.dim(axis)), axis);
  return e.scatter(x, full, updates, countUp(x.rank()), kind);
}

}  // namespace partita::builder
