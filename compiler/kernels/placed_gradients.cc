#include "compiler/kernels/placed_gradients.h"

#include <optional>

namespace partita::kernels {
namespace {

using llvm::ArrayRef;
using llvm::SmallVector;
using mlir::Value;

ArrayRef<int64_t> shapeOf(Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType()).getShape();
}

// The strides of `from`, whose dimensions a reshape joins to those of `to` with
// these strides. Absent if it also splits dimensions.
std::optional<SmallVector<int64_t>> splitStrides(ArrayRef<int64_t> from,
                                                 ArrayRef<int64_t> to,
                                                 ArrayRef<int64_t> strides) {
  SmallVector<int64_t> result(from.size());
  auto next = static_cast<int64_t>(from.size()) - 1;
  for (auto dim = static_cast<int64_t>(to.size()) - 1; dim >= 0; --dim) {
    int64_t size = 1;
    do {
      if (next < 0) return std::nullopt;
      result[next] = strides[dim] * size;
      size *= from[next--];
    } while (size < to[dim]);
    if (size != to[dim]) return std::nullopt;
  }
  return next < 0 ? std::optional(result) : std::nullopt;
}

// Follows `value`, which has these strides, to the gradient that it is.
std::optional<PlacedGradient> placed(Value value, int64_t begin,
                                     SmallVector<int64_t> strides) {
  while (true) {
    if (value.getDefiningOp<nn::AttentionGradOp>())
      return PlacedGradient{value, begin, strides};
    // Something else reads the value.
    if (!value.hasOneUse()) return std::nullopt;
    if (auto transpose = value.getDefiningOp<nn::TransposeOp>()) {
      SmallVector<int64_t> before(strides.size());
      for (auto [dim, from] : llvm::enumerate(transpose.getPerm()))
        before[from] = strides[dim];
      value = transpose.getInput();
      strides = before;
    } else if (auto reshape = value.getDefiningOp<nn::ReshapeOp>()) {
      auto before =
          splitStrides(shapeOf(reshape.getInput()), shapeOf(value), strides);
      if (!before) return std::nullopt;
      value = reshape.getInput();
      strides = *before;
    } else {
      return std::nullopt;
    }
  }
}

}  // namespace

SmallVector<PlacedGradient> placedGradients(nn::ConcatOp concat) {
  const ArrayRef<int64_t> shape = shapeOf(concat.getResult());
  SmallVector<int64_t> strides(shape.size(), 1);
  for (auto dim = static_cast<int64_t>(shape.size()) - 2; dim >= 0; --dim)
    strides[dim] = strides[dim + 1] * shape[dim + 1];
  const auto axis = static_cast<int64_t>(concat.getAxis());
  SmallVector<PlacedGradient> parts;
  int64_t begin = 0;
  for (Value input : concat.getInputs()) {
    const std::optional<PlacedGradient> part =
        placed(input, begin * strides[axis], strides);
    // Elements of a row must be neighbours.
    if (!part || part->strides.back() != 1 || !part->gradient.hasOneUse() ||
        (!parts.empty() && parts.front().gradient.getDefiningOp() !=
                               part->gradient.getDefiningOp()))
      return {};
    parts.push_back(*part);
    begin += shapeOf(input)[axis];
  }
  return parts;
}

}  // namespace partita::kernels
