#include "compiler/kernels/fusion_products.h"

#include "dialects/nn/ordered.h"

namespace partita::kernels {
namespace {

using mlir::Operation;

bool isElementwise(Operation* op) {
  return mlir::OpTrait::hasElementwiseMappableTraits(op);
}

// True if one kernel can compute both products.
bool agree(nn::OrderedDotOp a, nn::OrderedDotOp b) {
  return a.getX() == b.getX() && a.getOrder() == b.getOrder() &&
         a.getTransposed() == b.getTransposed() &&
         a.getW().getType() == b.getW().getType();
}

// True if `member` computes one value of the product's shape, by itself or from
// values of the same indices.
bool fits(Operation* member, nn::OrderedDotOp product) {
  if (member->getNumResults() != 1) return false;
  auto type =
      llvm::cast<mlir::RankedTensorType>(member->getResult(0).getType());
  return (isElementwise(member) || llvm::isa<nn::OrderedDotOp>(member)) &&
         type.getShape() == product.getType().getShape();
}

}  // namespace

bool productsAgree(Operation* op, llvm::ArrayRef<Operation*> members,
                   bool escapes) {
  llvm::SmallVector<nn::OrderedDotOp> products;
  for (Operation* member : members)
    if (auto product = llvm::dyn_cast<nn::OrderedDotOp>(member))
      products.push_back(product);
  auto own = llvm::dyn_cast<nn::OrderedDotOp>(op);
  if (!own) return products.empty() || isElementwise(op);
  return !escapes && products.size() < 2 &&
         llvm::all_of(
             products,
             [&](nn::OrderedDotOp other) { return agree(own, other); }) &&
         llvm::all_of(
             members, [&](Operation* member) { return fits(member, own); });
}

}  // namespace partita::kernels
