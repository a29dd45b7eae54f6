// Roles of operations in fusion; fusion_groups.h lists them.
#include "compiler/kernels/fusion_groups.h"
#include "dialects/nn/dialect.h"
#include "dialects/nn/ordered.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinTypes.h"

namespace partita::kernels {
namespace {

using mlir::Operation;
using mlir::Value;

// True if only arithmetic and reductions read the value, perhaps reshaped or
// repeated.
bool isReadByArithmetic(Value value) {
  return llvm::all_of(value.getUsers(), [](Operation* user) {
    if (llvm::isa<nn::BroadcastOp, nn::ReshapeOp>(user))
      return isReadByArithmetic(user->getResult(0));
    return llvm::isa<nn::ReduceOp>(user) ||
           mlir::OpTrait::hasElementwiseMappableTraits(user);
  });
}

}  // namespace

mlir::Value beforeWidening(mlir::Value value) {
  auto widened = value.getDefiningOp<mlir::arith::ExtFOp>();
  return widened ? widened.getIn() : value;
}

mlir::Value lseOf(Operation* op) {
  auto attention = llvm::dyn_cast<nn::AttentionOp>(op);
  return attention ? attention.getLse() : mlir::Value();
}

FusionRole fusionRoleOf(Operation& op) {
  if (op.getNumResults() == 0 ||
      llvm::isa<mlir::arith::ConstantOp, nn::LoopOp>(op))
    return FusionRole::fixed;
  if (llvm::isa<nn::BroadcastOp, nn::ReshapeOp, nn::TransposeOp, nn::SliceOp,
                nn::IotaOp>(op))
    return FusionRole::movement;
  // Each reader widens for itself: that reads half as much as the wide values.
  if (llvm::isa<mlir::arith::ExtFOp>(op) && isReadByArithmetic(op.getResult(0)))
    return FusionRole::movement;
  if (llvm::isa<nn::PadOp, nn::GatherOp>(op) ||
      mlir::OpTrait::hasElementwiseMappableTraits(&op))
    return FusionRole::elementwise;
  if (llvm::isa<nn::ReduceOp>(op)) return FusionRole::reduction;
  if (auto softmax = llvm::dyn_cast<nn::SoftmaxOp>(op))
    return static_cast<int64_t>(softmax.getAxis()) ==
                   llvm::cast<mlir::RankedTensorType>(softmax.getType())
                           .getRank() -
                       1
               ? FusionRole::row
               : FusionRole::single;
  if (llvm::isa<nn::LayerNormOp, nn::RmsNormOp>(op)) return FusionRole::row;
  if (llvm::isa<nn::AttentionOp>(op)) return FusionRole::attention;
  if (llvm::isa<nn::OrderedDotOp>(op)) return FusionRole::product;
  if (llvm::isa<nn::NNDialect>(op.getDialect())) return FusionRole::single;
  return FusionRole::fixed;
}

}  // namespace partita::kernels
