// Follows parameters from @main through calls, transposes and reshapes to their
// readers.
#include "frontends/pruning/pruned_weights.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "dialects/nn/dialect.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/IR/SymbolTable.h"

namespace partita::pruning {
namespace {

using Dims = std::vector<int64_t>;
using mlir::RankedTensorType;
using mlir::Value;
using mlir::func::CallOp;
using mlir::func::FuncOp;

RankedTensorType typeOf(Value value) {
  return llvm::cast<RankedTensorType>(value.getType());
}

// The dimensions of the input that a reshape keeps, if it only drops dimensions
// of size 1, as for the kernel of a 1x1 convolution.
std::optional<Dims> keptDims(nn::ReshapeOp reshape) {
  const auto from = typeOf(reshape.getInput()).getShape(),
             to = typeOf(reshape.getResult()).getShape();
  Dims kept;
  for (int64_t dim = 0; dim < static_cast<int64_t>(from.size()); ++dim) {
    if (kept.size() < to.size() && from[dim] == to[kept.size()])
      kept.push_back(dim);
    else if (from[dim] != 1)
      return std::nullopt;
  }
  if (kept.size() != to.size()) return std::nullopt;
  return kept;
}

// The dimensions of `weight` that its readers sum over, in terms of `dims`: the
// parameter's dimension of each of its own. False if something else reads it,
// or readers differ.
bool findSummed(Value weight, const Dims& dims, std::optional<Dims>& summed) {
  const auto agree = [&](Dims found) {
    for (int64_t& dim : found) dim = dims[dim];
    std::sort(found.begin(), found.end());
    if (summed && *summed != found) return false;
    summed = found;
    return true;
  };
  for (mlir::OpOperand& use : weight.getUses()) {
    mlir::Operation* reader = use.getOwner();
    if (auto call = llvm::dyn_cast<CallOp>(reader)) {
      auto function = mlir::SymbolTable::lookupNearestSymbolFrom<FuncOp>(
          call, call.getCalleeAttr());
      if (!function || function.isExternal() ||
          !findSummed(function.getArgument(use.getOperandNumber()), dims,
                      summed))
        return false;
    } else if (auto transpose = llvm::dyn_cast<nn::TransposeOp>(reader)) {
      Dims moved;
      for (int64_t from : transpose.getPerm()) moved.push_back(dims[from]);
      if (!findSummed(transpose.getResult(), moved, summed)) return false;
    } else if (auto reshape = llvm::dyn_cast<nn::ReshapeOp>(reader)) {
      const std::optional<Dims> kept = keptDims(reshape);
      if (!kept) return false;
      Dims moved;
      for (const int64_t from : *kept) moved.push_back(dims[from]);
      if (!findSummed(reshape.getResult(), moved, summed)) return false;
    } else if (auto dot = llvm::dyn_cast<nn::DotGeneralOp>(reader)) {
      const bool is_lhs = use.getOperandNumber() == 0;
      const auto contracted =
          is_lhs ? dot.getLhsContract() : dot.getRhsContract();
      if (dot.getLhs() == dot.getRhs() || contracted.empty() ||
          !agree(Dims(contracted.begin(), contracted.end())))
        return false;
    } else if (llvm::isa<nn::ConvOp>(reader) && use.getOperandNumber() == 1) {
      Dims all(typeOf(weight).getRank() - 1);
      std::iota(all.begin(), all.end(), int64_t{1});
      if (!agree(all)) return false;
    } else {
      return false;
    }
  }
  return true;
}

Dims identity(int64_t rank) {
  Dims dims(rank);
  std::iota(dims.begin(), dims.end(), int64_t{0});
  return dims;
}

// Walks back from the operand of a product to the products and biases that make
// it. All values carry the reordered dimension as their last.
class Producers {
 public:
  // `reader` is the product whose operand is followed.
  bool follow(Value value, mlir::Operation* reader) {
    mlir::Operation* op = value.getDefiningOp();
    // Others may read the same constant.
    if (op && op->hasTrait<mlir::OpTrait::ConstantLike>()) return isSplat(op);
    // What else reads the value must be on the way, too, or is a part of it.
    for (mlir::Operation* user : value.getUsers())
      if (user != reader && !on_the_way_.contains(user))
        pending_.push_back(user);
    if (!seen_.insert(value).second) return true;
    if (!op || op->getNumResults() != 1) return false;
    on_the_way_.insert(op);
    const int64_t last = typeOf(value).getRank() - 1;
    if (auto dot = llvm::dyn_cast<nn::DotGeneralOp>(op)) {
      // The last dimension of the result is the last free one of the right.
      const auto batch = dot.getRhsBatch(), contracted = dot.getRhsContract();
      int64_t dim = typeOf(dot.getRhs()).getRank() - 1;
      while (dim >= 0 && (llvm::is_contained(batch, dim) ||
                          llvm::is_contained(contracted, dim)))
        --dim;
      return dim >= 0 && reach(dot.getRhs(), dim);
    }
    if (auto broadcast = llvm::dyn_cast<nn::BroadcastOp>(op)) {
      const auto dims = broadcast.getDims();
      const auto* found = llvm::find(dims, last);
      if (found == dims.end()) return true;  // the same along the dimension
      return reach(broadcast.getInput(), found - dims.begin());
    }
    if (!op->hasTrait<mlir::OpTrait::Elementwise>()) return false;
    return llvm::all_of(op->getOperands(), [&](Value operand) {
      return typeOf(operand).getShape() == typeOf(value).getShape() &&
             follow(operand, op);
    });
  }

  // True if everything that reads the values is on the way.
  bool isClosed() const {
    return llvm::all_of(pending_, [&](mlir::Operation* user) {
      return on_the_way_.contains(user);
    });
  }

  // Dimensions of arguments of the function.
  llvm::SmallVector<std::pair<mlir::BlockArgument, int64_t>> places;

 private:
  static bool isSplat(mlir::Operation* op) {
    auto constant = op->getAttrOfType<mlir::DenseElementsAttr>("value");
    return constant && constant.isSplat();
  }

  // Follows a weight or bias to an argument that nothing else reads.
  bool reach(Value value, int64_t dim) {
    while (value.hasOneUse()) {
      if (auto argument = llvm::dyn_cast<mlir::BlockArgument>(value)) {
        places.push_back({argument, dim});
        return true;
      }
      auto transpose = value.getDefiningOp<nn::TransposeOp>();
      if (!transpose) return false;
      dim = transpose.getPerm()[dim];
      value = transpose.getInput();
    }
    return false;
  }

  llvm::SmallPtrSet<mlir::Operation*, 16> on_the_way_;
  llvm::SmallVector<mlir::Operation*> pending_;
  llvm::DenseSet<Value> seen_;
};

llvm::StringRef textOf(FuncOp main, unsigned i, llvm::StringRef name) {
  auto text = main.getArgAttrOfType<mlir::StringAttr>(i, name);
  return text ? text.getValue() : llvm::StringRef();
}

}  // namespace

std::vector<PrunedWeight> findWeights(FuncOp main,
                                      std::vector<std::string>& others) {
  std::vector<PrunedWeight> found;
  for (mlir::BlockArgument argument : main.getArguments()) {
    const unsigned i = argument.getArgNumber();
    const RankedTensorType type = typeOf(argument);
    if (textOf(main, i, nn::kKindAttr) != "parameter" || type.getRank() < 2 ||
        !llvm::isa<mlir::FloatType>(type.getElementType()))
      continue;
    std::optional<Dims> summed;
    const std::string name = textOf(main, i, nn::kNameAttr).str();
    if (findSummed(argument, identity(type.getRank()), summed) && summed)
      found.push_back({i, name, type.getShape().vec(), *summed});
    else
      others.push_back(name);
  }
  return found;
}

std::vector<Place> reorderedWith(FuncOp main, const PrunedWeight& weight) {
  // The weight must have one reader, in @main or in a function.
  Value value = main.getArgument(weight.argument);
  if (!value.hasOneUse() || weight.summed.size() != 1) return {};
  CallOp call;
  int64_t dim = weight.summed[0];
  mlir::OpOperand* use = &*value.use_begin();
  if ((call = llvm::dyn_cast<CallOp>(use->getOwner()))) {
    auto function = mlir::SymbolTable::lookupNearestSymbolFrom<FuncOp>(
        call, call.getCalleeAttr());
    value = function.getArgument(use->getOperandNumber());
    if (!value.hasOneUse()) return {};
    use = &*value.use_begin();
  }
  while (auto transpose = llvm::dyn_cast<nn::TransposeOp>(use->getOwner())) {
    const auto perm = transpose.getPerm();
    dim = llvm::find(perm, dim) - perm.begin();
    if (!transpose.getResult().hasOneUse()) return {};
    use = &*transpose.getResult().use_begin();
  }
  auto dot = llvm::dyn_cast<nn::DotGeneralOp>(use->getOwner());
  if (!dot || dot.getLhsContract().size() != 1) return {};
  const bool weight_is_rhs = use->getOperandNumber() == 1;
  const Value operand = weight_is_rhs ? dot.getLhs() : dot.getRhs();
  const int64_t along =
      weight_is_rhs ? dot.getLhsContract()[0] : dot.getRhsContract()[0];
  if (along != typeOf(operand).getRank() - 1) return {};
  Producers producers;
  if (!producers.follow(operand, dot) || !producers.isClosed()) return {};
  std::vector<Place> places;
  for (auto [argument, reordered] : producers.places) {
    Value outer = argument;
    if (call) outer = call.getOperand(argument.getArgNumber());
    auto given = llvm::dyn_cast<mlir::BlockArgument>(outer);
    if (!given || given.getOwner() != &main.front() || !given.hasOneUse() ||
        textOf(main, given.getArgNumber(), nn::kKindAttr) != "parameter")
      return {};
    places.push_back({given.getArgNumber(), reordered});
  }
  return places;
}

}  // namespace partita::pruning
