// Groups lie along the last dimension that products sum over.
#include "compiler/quantize/use_groups.h"

#include "llvm/ADT/STLExtras.h"
#include "mlir/IR/AffineMap.h"

namespace partita::quantize {
namespace {

using llvm::SmallVector;
using mlir::RankedTensorType;
using mlir::Value;

RankedTensorType typeOf(Value value) {
  return llvm::cast<RankedTensorType>(value.getType());
}

// Sizes in the order in which the weight is stored.
SmallVector<int64_t> orderedSizes(const Weight& weight, RankedTensorType type) {
  SmallVector<int64_t> sizes;
  for (const int64_t dim : weight.order(type.getRank()))
    sizes.push_back(type.getDimSize(dim));
  return sizes;
}

}  // namespace

RankedTensorType packedType(const Weight& weight, RankedTensorType type) {
  SmallVector<int64_t> sizes = orderedSizes(weight, type);
  sizes.back() /= weight.group;
  sizes.push_back(weight.group / 2);
  return RankedTensorType::get(sizes,
                               mlir::IntegerType::get(type.getContext(), 8));
}

RankedTensorType groupsType(const Weight& weight, RankedTensorType type,
                            mlir::Type element) {
  return RankedTensorType::get(packedType(weight, type).getShape().drop_back(),
                               element);
}

Value widenGroups(mlir::OpBuilder& builder, mlir::Location loc,
                  const Weight& weight, const GroupValues& values,
                  RankedTensorType type) {
  SmallVector<int64_t> sizes(typeOf(values.packed).getShape());
  sizes.back() *= 2;
  const Value groups = nn::DequantizeOp::create(
      builder, loc, RankedTensorType::get(sizes, type.getElementType()),
      values.packed, values.scale, values.zero);
  const Value ordered = nn::ReshapeOp::create(
      builder, loc,
      RankedTensorType::get(orderedSizes(weight, type), type.getElementType()),
      groups);
  // Dimension i of `ordered` is dimension order[i] of the weight.
  const SmallVector<int64_t> order = weight.order(type.getRank());
  SmallVector<int64_t> perm(order.size());
  for (auto [i, dim] : llvm::enumerate(order))
    perm[dim] = static_cast<int64_t>(i);
  if (llvm::is_sorted(perm)) return ordered;
  return nn::TransposeOp::create(builder, loc, ordered, perm);
}

void lookUpGroups(nn::GatherOp gather, const GroupValues& values) {
  mlir::OpBuilder builder(gather);
  const mlir::Location loc = gather.getLoc();
  RankedTensorType type = gather.getType();
  const auto rows = typeOf(gather.getIndices()).getShape().drop_back();
  const auto take = [&](Value table) -> Value {
    if (!table) return {};
    SmallVector<int64_t> sizes(rows);
    llvm::append_range(sizes, typeOf(table).getShape().drop_front());
    return nn::GatherOp::create(
        builder, loc,
        RankedTensorType::get(sizes, typeOf(table).getElementType()), table,
        gather.getIndices(), gather.getAxesAttr(), gather.getBatchDimsAttr());
  };
  const Value packed = take(values.packed), scale = take(values.scale),
              zero = take(values.zero);
  SmallVector<int64_t> sizes(typeOf(packed).getShape());
  sizes.back() *= 2;
  const Value groups = nn::DequantizeOp::create(
      builder, loc, RankedTensorType::get(sizes, type.getElementType()), packed,
      scale, zero);
  gather.replaceAllUsesWith(
      nn::ReshapeOp::create(builder, loc, type, groups).getResult());
  gather.erase();
}

}  // namespace partita::quantize
