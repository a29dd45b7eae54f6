// Result types that follow from operands and attributes, and the builders that
// use them.
#include "dialects/nn/dialect.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/Support/MathExtras.h"

namespace partita::nn {
namespace {

using mlir::ArrayRef;
using mlir::RankedTensorType;
using mlir::SmallVector;

// True if `dims` are distinct dimensions of a tensor of this rank.
bool areDistinctDims(ArrayRef<int64_t> dims, int64_t rank) {
  llvm::SmallBitVector seen(rank);
  for (int64_t dim : dims) {
    if (dim < 0 || dim >= rank || seen.test(dim)) return false;
    seen.set(dim);
  }
  return true;
}

void appendFreeSizes(RankedTensorType type, ArrayRef<int64_t> batch,
                     ArrayRef<int64_t> contract, SmallVector<int64_t>& shape) {
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    if (!llvm::is_contained(batch, dim) && !llvm::is_contained(contract, dim))
      shape.push_back(type.getDimSize(dim));
  }
}

}  // namespace

RankedTensorType inferTransposeType(RankedTensorType input,
                                    ArrayRef<int64_t> perm) {
  if (static_cast<int64_t>(perm.size()) != input.getRank() ||
      !areDistinctDims(perm, input.getRank()))
    return {};
  SmallVector<int64_t> shape;
  for (int64_t dim : perm) shape.push_back(input.getDimSize(dim));
  return input.clone(shape);
}

RankedTensorType inferReduceType(RankedTensorType input,
                                 ArrayRef<int64_t> dims) {
  if (!areDistinctDims(dims, input.getRank()) || !llvm::is_sorted(dims))
    return {};
  SmallVector<int64_t> shape;
  appendFreeSizes(input, {}, dims, shape);
  return input.clone(shape);
}

RankedTensorType inferDotGeneralType(RankedTensorType lhs, RankedTensorType rhs,
                                     ArrayRef<int64_t> lhs_batch,
                                     ArrayRef<int64_t> rhs_batch,
                                     ArrayRef<int64_t> lhs_contract,
                                     ArrayRef<int64_t> rhs_contract) {
  if (lhs_batch.size() != rhs_batch.size() ||
      lhs_contract.size() != rhs_contract.size())
    return {};
  if (!areDistinctDims(
          llvm::to_vector(llvm::concat<const int64_t>(lhs_batch, lhs_contract)),
          lhs.getRank()))
    return {};
  if (!areDistinctDims(
          llvm::to_vector(llvm::concat<const int64_t>(rhs_batch, rhs_contract)),
          rhs.getRank()))
    return {};
  SmallVector<int64_t> shape;
  for (int64_t dim : lhs_batch) shape.push_back(lhs.getDimSize(dim));
  appendFreeSizes(lhs, lhs_batch, lhs_contract, shape);
  appendFreeSizes(rhs, rhs_batch, rhs_contract, shape);
  return lhs.clone(shape);
}

RankedTensorType inferGatherType(RankedTensorType input,
                                 RankedTensorType indices,
                                 ArrayRef<int64_t> axes, int64_t batch_dims) {
  if (batch_dims < 0 || batch_dims > input.getRank() ||
      indices.getRank() < batch_dims + 1)
    return {};
  if (!areDistinctDims(axes, input.getRank()) ||
      llvm::any_of(axes, [&](int64_t axis) { return axis < batch_dims; }))
    return {};
  if (indices.getShape().back() != static_cast<int64_t>(axes.size())) return {};
  if (input.getShape().take_front(batch_dims) !=
      indices.getShape().take_front(batch_dims))
    return {};
  SmallVector<int64_t> shape(indices.getShape().drop_back());
  for (int64_t dim = batch_dims; dim < input.getRank(); ++dim) {
    if (!llvm::is_contained(axes, dim)) shape.push_back(input.getDimSize(dim));
  }
  return input.clone(shape);
}

int64_t windowedSize(int64_t size, int64_t window, int64_t stride,
                     int64_t dilation, int64_t low, int64_t high) {
  // A window beyond all sizes has no place.
  int64_t reach, room;
  if (llvm::MulOverflow(dilation, window - 1, reach) ||
      llvm::AddOverflow(low, size, room) ||
      llvm::AddOverflow(room, high, room) ||
      llvm::SubOverflow(room, reach, room) ||
      llvm::SubOverflow<int64_t>(room, 1, room))
    return 0;
  return room < 0 ? 0 : room / stride + 1;
}

// Gives an inconsistent operation its operand's type, so that the verifier
// reports it instead of a crash here.
static mlir::Type orElse(RankedTensorType inferred, RankedTensorType fallback) {
  return inferred ? inferred : fallback;
}

void TransposeOp::build(mlir::OpBuilder& builder, mlir::OperationState& state,
                        mlir::Value input, ArrayRef<int64_t> perm) {
  const auto type = mlir::cast<RankedTensorType>(input.getType());
  build(builder, state, orElse(inferTransposeType(type, perm), type), input,
        perm);
}

void DotGeneralOp::build(mlir::OpBuilder& builder, mlir::OperationState& state,
                         mlir::Value lhs, mlir::Value rhs,
                         ArrayRef<int64_t> lhs_batch,
                         ArrayRef<int64_t> rhs_batch,
                         ArrayRef<int64_t> lhs_contract,
                         ArrayRef<int64_t> rhs_contract) {
  const auto lhs_type = mlir::cast<RankedTensorType>(lhs.getType());
  const auto rhs_type = mlir::cast<RankedTensorType>(rhs.getType());
  const RankedTensorType type = inferDotGeneralType(
      lhs_type, rhs_type, lhs_batch, rhs_batch, lhs_contract, rhs_contract);
  build(builder, state, orElse(type, lhs_type), lhs, rhs, lhs_batch, rhs_batch,
        lhs_contract, rhs_contract);
}

void AttentionOp::build(mlir::OpBuilder& builder, mlir::OperationState& state,
                        mlir::Type result, mlir::Value q, mlir::Value k,
                        mlir::Value v, mlir::Value bias, mlir::FloatAttr scale,
                        mlir::IntegerAttr causal_offset,
                        mlir::FloatAttr softcap, mlir::IntegerAttr window) {
  build(builder, state, result, /*lse=*/mlir::Type(), q, k, v, bias,
        /*shift=*/{}, /*q_segments=*/{}, /*k_segments=*/{}, /*first_head=*/{},
        scale, causal_offset, window, /*sinks=*/{}, /*blocks=*/{},
        /*block_size=*/{}, softcap);
}

void ReduceOp::build(mlir::OpBuilder& builder, mlir::OperationState& state,
                     ReduceKind kind, mlir::Value input,
                     ArrayRef<int64_t> dims) {
  const auto type = mlir::cast<RankedTensorType>(input.getType());
  build(builder, state, orElse(inferReduceType(type, dims), type), kind, input,
        dims);
}

}  // namespace partita::nn
