// Follows the only use of each value from the product on.
#include "dialects/nn/product_epilogue.h"

#include "dialects/nn/dialect.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace partita::nn {
namespace {

namespace arith = mlir::arith;
using mlir::Operation;
using mlir::RankedTensorType;
using mlir::Value;

RankedTensorType typeOf(Value value) {
  return mlir::cast<RankedTensorType>(value.getType());
}

// The value that `wide` widens to f32, or `wide` itself.
Value narrowed(Value wide) {
  auto extension = wide.getDefiningOp<arith::ExtFOp>();
  return extension ? extension.getIn() : wide;
}

// Dimensions of the result that a bias runs along: the free ones of a product's
// right-hand side, or a convolution's channel.
llvm::SmallVector<int64_t> channelDims(Operation* product) {
  const int64_t rank = typeOf(product->getResult(0)).getRank();
  if (auto conv = mlir::dyn_cast<ConvOp>(product))
    return {conv.getChannelsLast() ? rank - 1 : 1};
  auto dot = mlir::cast<DotGeneralOp>(product);
  const int64_t free = typeOf(dot.getRhs()).getRank() -
                       static_cast<int64_t>(dot.getRhsBatch().size() +
                                            dot.getRhsContract().size());
  return llvm::to_vector(llvm::seq<int64_t>(rank - free, rank));
}

// The tensor with one element per channel that `value` repeats along all other
// dimensions, or null. It may be widened before or after the broadcast.
Value channelVector(Value value, llvm::ArrayRef<int64_t> channel_dims) {
  auto broadcast = narrowed(value).getDefiningOp<BroadcastOp>();
  if (!broadcast) return nullptr;
  const RankedTensorType from = broadcast.getInput().getType();
  int64_t channels = 1;
  for (int64_t dim : channel_dims)
    channels *= broadcast.getType().getDimSize(dim);
  if (from.getNumElements() != channels) return nullptr;
  int64_t last = -1;  // the library wants the elements in order
  for (auto [dim, to] : llvm::enumerate(broadcast.getDims())) {
    if (from.getDimSize(dim) == 1) continue;
    if (!llvm::is_contained(channel_dims, to) || to <= last) return nullptr;
    last = to;
  }
  return narrowed(broadcast.getInput());
}

// True if the value lies in memory anyway. A kernel adds others without
// storing them.
bool isStored(Value value) {
  Operation* producer = value.getDefiningOp();
  return !producer || (!mlir::isa<BroadcastOp, IotaOp>(producer) &&
                       !producer->hasTrait<mlir::OpTrait::ConstantLike>());
}

// The only user of a value, or null.
Operation* onlyUser(Value value) {
  return value.hasOneUse() ? *value.user_begin() : nullptr;
}

}  // namespace

Value channelVector(Operation* product, Value value) {
  return channelVector(value, channelDims(product));
}

ProductEpilogue epilogueOf(Operation* product, bool residuals, Value scaled) {
  const Value whole = scaled ? scaled : product->getResult(0);
  const RankedTensorType type = typeOf(whole);
  const mlir::Type element = type.getElementType();
  const llvm::SmallVector<int64_t> channel_dims = channelDims(product);
  ProductEpilogue found, next;
  Value sum = whole;
  if (!element.isF32()) {
    auto extension = mlir::dyn_cast_if_present<arith::ExtFOp>(onlyUser(sum));
    if (!extension) return found;
    sum = extension.getResult();
    if (!typeOf(sum).getElementType().isF32()) return found;
  }
  while (auto add = mlir::dyn_cast_if_present<arith::AddFOp>(onlyUser(sum))) {
    const Value other = add.getLhs() == sum ? add.getRhs() : add.getLhs();
    const Value vector = channelVector(other, channel_dims);
    if (vector && typeOf(vector).getElementType() == element && !next.bias &&
        !next.residual)
      next.bias = vector;
    else if (residuals && !next.residual && narrowed(other).getType() == type &&
             isStored(narrowed(other)))
      next.residual = narrowed(other);
    else
      break;
    sum = add.getResult();
    Operation* last = add;
    if (!element.isF32()) {
      auto rounding = mlir::dyn_cast_if_present<arith::TruncFOp>(onlyUser(sum));
      last = rounding && rounding.getType() == type ? rounding : nullptr;
    }
    if (!last) continue;
    next.last = last;
    found = next;
    if (!element.isF32()) break;  // the result is rounded here
  }
  return found;
}

}  // namespace partita::nn
