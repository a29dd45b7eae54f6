// Follows the first dimension of each input to the products that use it.
#include "frontends/stablehlo/find_weights.h"

#include <optional>
#include <set>

#include "dialects/nn/dialect.h"
#include "dialects/nn/weight_mark.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace partita::stablehlo {
namespace {

using mlir::Operation;
using mlir::Value;

// A value that data movement makes from an input, and the dimension that holds
// the input's first one.
struct Place {
  Value value;
  int64_t dim;
};

llvm::ArrayRef<int64_t> shapeOf(Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType()).getShape();
}

// The dimension of the result that holds all rows of `dim`; none if a reshape
// divides or joins it.
std::optional<int64_t> dimAfterReshape(llvm::ArrayRef<int64_t> from,
                                       llvm::ArrayRef<int64_t> to,
                                       int64_t dim) {
  int64_t before = 1, size = 1;
  for (int64_t i = 0; i < dim; ++i) before *= from[i];
  for (int64_t i = 0; i < static_cast<int64_t>(to.size()); size *= to[i++])
    if (size == before && to[i] == from[dim]) return i;
  return std::nullopt;
}

std::optional<int64_t> dimAfter(Operation* op, const Place& place) {
  if (auto transpose = mlir::dyn_cast<nn::TransposeOp>(op)) {
    const auto found = llvm::find(transpose.getPerm(), place.dim);
    return found - transpose.getPerm().begin();
  }
  if (mlir::isa<nn::ReshapeOp>(op))
    return dimAfterReshape(shapeOf(place.value), shapeOf(op->getResult(0)),
                           place.dim);
  if (mlir::isa<mlir::arith::ExtFOp, mlir::arith::TruncFOp>(op))
    return place.dim;
  return std::nullopt;
}

// The dimension before transposes.
int64_t dimBefore(Value value, int64_t dim) {
  while (auto transpose = value.getDefiningOp<nn::TransposeOp>()) {
    dim = transpose.getPerm()[dim];
    value = transpose.getInput();
  }
  return dim;
}

// True if a product sums over the place's dimension and another than the first
// of its other operand, before transposes.
bool sumsAsWeight(nn::DotGeneralOp op, const Place& place) {
  const auto sums = [&](Value operand, llvm::ArrayRef<int64_t> dims,
                        Value other, llvm::ArrayRef<int64_t> others) {
    if (operand != place.value) return false;
    const auto found = llvm::find(dims, place.dim);
    return found != dims.end() &&
           dimBefore(other, others[found - dims.begin()]) != 0;
  };
  const Value lhs = op.getLhs(), rhs = op.getRhs();
  return sums(lhs, op.getLhsContract(), rhs, op.getRhsContract()) ||
         sums(rhs, op.getRhsContract(), lhs, op.getLhsContract());
}

bool isUsedAsWeight(mlir::BlockArgument argument) {
  llvm::SmallVector<Place> left = {{argument, 0}};
  llvm::DenseSet<Value> seen;
  while (!left.empty()) {
    const Place place = left.pop_back_val();
    if (!seen.insert(place.value).second) continue;
    for (Operation* user : place.value.getUsers()) {
      if (auto conv = mlir::dyn_cast<nn::ConvOp>(user))
        if (conv.getWeight() == place.value) return true;
      if (auto dot = mlir::dyn_cast<nn::DotGeneralOp>(user))
        if (sumsAsWeight(dot, place)) return true;
      if (const auto dim = dimAfter(user, place))
        left.push_back({user->getResult(0), *dim});
    }
  }
  return false;
}

struct Tree {
  llvm::SmallVector<mlir::BlockArgument> tensors;  // not scalars
  std::set<int64_t> first_dims;
  bool has_data = false;
};

}  // namespace

void markWeights(mlir::func::FuncOp main) {
  llvm::StringMap<Tree> trees;
  for (mlir::BlockArgument argument : main.getArguments()) {
    const unsigned i = argument.getArgNumber();
    const auto name = main.getArgAttrOfType<mlir::StringAttr>(i, nn::kNameAttr);
    const auto kind = main.getArgAttrOfType<mlir::StringAttr>(i, nn::kKindAttr);
    const auto type =
        mlir::dyn_cast<mlir::RankedTensorType>(argument.getType());
    if (!name || !kind || kind.getValue() != "input" || !type ||
        type.getRank() == 0)
      continue;
    Tree& tree = trees[name.getValue().split('.').first];
    tree.tensors.push_back(argument);
    tree.first_dims.insert(type.getDimSize(0));
    tree.has_data |= !mlir::isa<mlir::FloatType>(type.getElementType());
  }
  for (const auto& [name, tree] : trees) {
    if (tree.has_data || (tree.first_dims.size() < 2 &&
                          llvm::none_of(tree.tensors, isUsedAsWeight)))
      continue;
    for (mlir::BlockArgument argument : tree.tensors)
      main.setArgAttr(argument.getArgNumber(), nn::kWeightAttr,
                      mlir::UnitAttr::get(main.getContext()));
  }
}

}  // namespace partita::stablehlo
