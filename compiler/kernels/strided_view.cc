// Follows transposes, reshapes, broadcasts and slices back to the memory they
// read.
#include "compiler/kernels/strided_view.h"

#include "dialects/nn/dialect.h"
#include "mlir/IR/BuiltinTypes.h"

namespace partita::kernels {
namespace {

using llvm::ArrayRef;
using llvm::SmallVector;
using mlir::RankedTensorType;
using mlir::Value;

RankedTensorType typeOf(Value value) {
  return llvm::cast<RankedTensorType>(value.getType());
}

}  // namespace

SmallVector<int64_t> denseStrides(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (int64_t dim = static_cast<int64_t>(shape.size()) - 2; dim >= 0; --dim)
    strides[dim] = strides[dim + 1] * shape[dim + 1];
  return strides;
}

// Every group of merged dimensions must be collapsible.
std::optional<SmallVector<int64_t>> reshapedStrides(
    ArrayRef<int64_t> shape, ArrayRef<int64_t> strides,
    ArrayRef<int64_t> new_shape) {
  SmallVector<std::pair<int64_t, int64_t>>
      source;  // (size, stride) without dimensions of size 1
  for (auto [size, stride] : llvm::zip_equal(shape, strides))
    if (size != 1) source.push_back({size, stride});
  SmallVector<int64_t> result(new_shape.size(), 0);
  int64_t target = static_cast<int64_t>(new_shape.size()) - 1;
  int64_t from = static_cast<int64_t>(source.size()) - 1;
  while (target >= 0) {
    if (new_shape[target] == 1) {
      --target;
      continue;
    }
    if (from < 0) return std::nullopt;
    int64_t available = source[from].first, stride = source[from].second;
    // Fill target dimensions from this run of collapsible source dimensions,
    // innermost first.
    int64_t run_stride = stride;
    while (available > 1) {
      while (target >= 0 && new_shape[target] == 1) --target;
      if (target < 0) return std::nullopt;
      while (available % new_shape[target] != 0) {
        if (from == 0 ||
            source[from - 1].second != source[from].first * source[from].second)
          return std::nullopt;
        --from;
        available *= source[from].first;
      }
      result[target] = run_stride;
      run_stride *= new_shape[target];
      available /= new_shape[target];
      --target;
    }
    --from;
  }
  return result;
}

StridedView denseView(Value value) {
  return {value, denseStrides(typeOf(value).getShape())};
}

namespace {

StridedView follow(Value value, bool through_slices) {
  if (auto transpose = value.getDefiningOp<nn::TransposeOp>()) {
    StridedView view = follow(transpose.getInput(), through_slices);
    SmallVector<int64_t> strides;
    for (int64_t dim : transpose.getPerm())
      strides.push_back(view.strides[dim]);
    return {view.base, strides, view.offset};
  }
  if (auto reshape = value.getDefiningOp<nn::ReshapeOp>()) {
    StridedView view = follow(reshape.getInput(), through_slices);
    if (auto strides = reshapedStrides(typeOf(reshape.getInput()).getShape(),
                                       view.strides, typeOf(value).getShape()))
      return {view.base, *strides, view.offset};
    return denseView(value);
  }
  if (auto broadcast = value.getDefiningOp<nn::BroadcastOp>()) {
    StridedView view = follow(broadcast.getInput(), through_slices);
    SmallVector<int64_t> strides(typeOf(value).getRank(), 0);
    for (auto [from, dim] : llvm::enumerate(broadcast.getDims()))
      if (typeOf(broadcast.getInput()).getDimSize(from) ==
          typeOf(value).getDimSize(dim))
        strides[dim] = view.strides[from];
    return {view.base, strides, view.offset};
  }
  if (auto slice = value.getDefiningOp<nn::SliceOp>();
      slice && through_slices) {
    StridedView view = follow(slice.getInput(), through_slices);
    for (auto [dim, start] : llvm::enumerate(slice.getStarts())) {
      view.offset += start * view.strides[dim];
      view.strides[dim] *= slice.getStrides()[dim];
    }
    return view;
  }
  return denseView(value);
}

}  // namespace

StridedView viewOf(Value value) {
  return follow(value, /*through_slices=*/false);
}

StridedView viewOfSlices(Value value) {
  return follow(value, /*through_slices=*/true);
}

std::optional<Extent> collapse(Value value, const StridedView& view,
                               ArrayRef<int64_t> dims) {
  Extent extent;
  for (int64_t dim : llvm::reverse(dims)) {
    const int64_t size = typeOf(value).getDimSize(dim),
                  stride = view.strides[dim];
    if (size == 1) continue;
    if (extent.size == 1)
      extent = {size, stride};
    else if (stride == extent.size * extent.stride)
      extent.size *= size;
    else
      return std::nullopt;
  }
  return extent;
}

}  // namespace partita::kernels
