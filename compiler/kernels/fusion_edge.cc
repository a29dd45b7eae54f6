#include "compiler/kernels/fusion_edge.h"

#include "dialects/nn/dialect.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinTypes.h"

namespace partita::kernels {
namespace {

mlir::RankedTensorType typeOf(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType());
}

// True if dimension i of the input has size 1 and only dimensions of size 1
// follow it: the broadcast repeats a row's value along the row.
bool isLastWideDim(nn::BroadcastOp broadcast, size_t i) {
  for (int64_t later = i; later < typeOf(broadcast.getInput()).getRank();
       ++later)
    if (typeOf(broadcast.getInput()).getDimSize(later) != 1) return false;
  return true;
}

}  // namespace

void Edge::pass(mlir::Operation* movement) {
  if (auto broadcast = llvm::dyn_cast<nn::BroadcastOp>(movement)) {
    repeats = true;
    // Leading dimensions are carried over one to one: each element is needed
    // along whole rows only.
    for (auto [i, dim] : llvm::enumerate(broadcast.getDims()))
      if (dim != static_cast<int64_t>(i)) repeats_rows = false;
    if (moved) repeats_rows = false;
    for (auto [i, dim] : llvm::enumerate(broadcast.getDims()))
      if (repeats_rows && typeOf(broadcast.getInput()).getDimSize(i) !=
                              typeOf(broadcast.getResult()).getDimSize(dim))
        repeats_rows = isLastWideDim(broadcast, i);
  } else if (llvm::isa<nn::ReshapeOp>(movement)) {
    reshaped = true;
  } else if (!llvm::isa<mlir::arith::ExtFOp>(movement)) {
    moved = true;
  }
}

}  // namespace partita::kernels
