// The dimension of a parameter that products sum over decides which name gets
// the prime.
#include "compiler/sharding/labels.h"

#include <map>

#include "compiler/sharding/dim_groups.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::sharding {
namespace {

using llvm::SmallVector;
using mlir::Operation;
using mlir::Value;
using mlir::func::FuncOp;

SmallVector<int64_t> summedDims(Value value);

// Returns the dimensions of a reshape's input that correspond one-to-one to
// these dimensions of its result.
SmallVector<int64_t> throughReshape(nn::ReshapeOp op,
                                    llvm::ArrayRef<int64_t> dims) {
  SmallVector<int64_t> result;
  auto groups =
      groupDims(op.getInput().getType().getShape(), op.getType().getShape());
  if (!groups) return result;
  for (const DimGroup& group : *groups)
    if (group.from_end - group.from_begin == 1 &&
        group.to_end - group.to_begin == 1 &&
        llvm::is_contained(dims, group.to_begin))
      result.push_back(group.from_begin);
  return result;
}

SmallVector<int64_t> summedBy(mlir::OpOperand& use) {
  Operation* user = use.getOwner();
  if (auto dot = mlir::dyn_cast<nn::DotGeneralOp>(user))
    return llvm::to_vector(use.getOperandNumber() == 0 ? dot.getLhsContract()
                                                       : dot.getRhsContract());
  if (mlir::isa<nn::ConvOp>(user) && use.getOperandNumber() == 1) return {1};
  if (auto reshape = mlir::dyn_cast<nn::ReshapeOp>(user))
    return throughReshape(reshape, summedDims(reshape.getResult()));
  if (auto call = mlir::dyn_cast<mlir::func::CallOp>(user)) {
    auto callee = mlir::SymbolTable::lookupNearestSymbolFrom<FuncOp>(
        call, call.getCalleeAttr());
    if (callee && !callee.isExternal())
      return summedDims(callee.getArgument(use.getOperandNumber()));
  }
  if (user->hasTrait<mlir::OpTrait::Elementwise>() &&
      user->getNumResults() == 1 &&
      user->getResult(0).getType() == use.get().getType())
    return summedDims(user->getResult(0));
  return {};
}

// Returns the dimensions that the first product that uses the value sums over.
SmallVector<int64_t> summedDims(Value value) {
  for (mlir::OpOperand& use : value.getUses()) {
    SmallVector<int64_t> dims = summedBy(use);
    if (!dims.empty()) return dims;
  }
  return {};
}

Dim label(llvm::ArrayRef<int> segments, const DimClasses& classes,
          const Names& names, std::map<std::string, int>& met) {
  auto primed = [&](const std::string& name) {
    return name + std::string(met[name]++, '\'');
  };
  Dim result;
  if (auto role = names.roles.find(segments.vec()); role != names.roles.end())
    result.role = primed(role->second);
  std::string previous;
  for (int segment : segments) {
    const std::string name = names.of(segment);
    const int64_t size = classes.sizeOf(segment);
    // Key-value heads and the queries of each are both heads.
    if (name == "N" && previous == "N")
      result.segments.back().size *= size;
    else
      result.segments.push_back({name.empty() ? name : primed(name), size});
    previous = name;
  }
  return result;
}

}  // namespace

SmallVector<Dim> Labels::of(Value value) const {
  auto type = mlir::dyn_cast<mlir::RankedTensorType>(value.getType());
  const int64_t rank = type ? type.getRank() : 0;
  SmallVector<Dim> dims(rank);
  auto labelIn = [&](llvm::ArrayRef<int64_t> order) {
    std::map<std::string, int> met;
    for (int64_t dim : order)
      dims[dim] = label(classes_.segmentsOf(value, dim), classes_, names_, met);
    return llvm::any_of(met,
                        [](const auto& entry) { return entry.second > 1; });
  };
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  if (!labelIn(order) || !mlir::isa<mlir::BlockArgument>(value)) return dims;
  SmallVector<int64_t> summed_first = summedDims(value);
  for (int64_t dim : order)
    if (!llvm::is_contained(summed_first, dim)) summed_first.push_back(dim);
  labelIn(summed_first);
  return dims;
}

}  // namespace partita::sharding
