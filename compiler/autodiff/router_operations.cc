// Walks from the operands of nn.experts back to products. Without a product on
// the way the choice is no router's, and nothing is found.
#include "compiler/autodiff/router_operations.h"

#include "dialects/nn/dialect.h"

namespace partita::autodiff {
namespace {

using mlir::Operation;

bool isPartOfRouter(Operation* op) {
  return op->hasTrait<mlir::OpTrait::Elementwise>() ||
         op->hasTrait<mlir::OpTrait::ConstantLike>() ||
         llvm::isa<nn::SoftmaxOp, nn::TopKOp, nn::ReduceOp, nn::ReduceWindowOp,
                   nn::BroadcastOp, nn::ReshapeOp, nn::TransposeOp, nn::SliceOp,
                   nn::ConcatOp, nn::PadOp, nn::GatherOp, nn::IotaOp>(op);
}

}  // namespace

llvm::DenseSet<Operation*> findRouterOperations(mlir::func::FuncOp function) {
  llvm::DenseSet<Operation*> found;
  function.walk([&](nn::ExpertsOp experts) {
    llvm::DenseSet<Operation*> seen;
    llvm::SmallVector<mlir::Value> open = {experts.getIds(),
                                           experts.getWeights()};
    bool has_product = false;
    while (!open.empty()) {
      Operation* op = open.pop_back_val().getDefiningOp();
      if (!op || seen.contains(op)) continue;
      const bool is_product = llvm::isa<nn::DotGeneralOp>(op);
      has_product |= is_product;
      if (!is_product && !isPartOfRouter(op)) continue;
      seen.insert(op);
      if (!is_product) llvm::append_range(open, op->getOperands());
    }
    if (has_product) found.insert(seen.begin(), seen.end());
  });
  return found;
}

}  // namespace partita::autodiff
