// Gives every factor of an operation a dimension, and unites it with the
// dimensions of the operands and results that carry it.
#include "compiler/sharding/dim_classes.h"

#include "dialects/nn/dialect.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::sharding {

using mlir::Operation;
using mlir::Value;
using mlir::func::CallOp;
using mlir::func::FuncOp;

DimClasses::DimClasses(mlir::ModuleOp module) : stored_(module) {
  for (FuncOp function : module.getOps<FuncOp>()) {
    if (function.isExternal()) continue;
    for (Operation& op : function.front()) visit(&op);
  }
  module.walk([&](CallOp call) {
    auto callee = module.lookupSymbol<FuncOp>(call.getCallee());
    if (!callee || callee.isExternal()) return;
    for (auto [operand, argument] :
         llvm::zip_equal(call.getOperands(), callee.getArguments()))
      unify(operand, argument);
    for (auto [result, returned] : llvm::zip_equal(
             call.getResults(), callee.front().getTerminator()->getOperands()))
      unify(result, returned);
  });
  module.walk([&](nn::LoopOp loop) {
    auto body = module.lookupSymbol<FuncOp>(loop.getBody());
    if (!body || body.isExternal()) return;
    for (auto [operand, argument] :
         llvm::zip_equal(loop.getOperands(), body.getArguments()))
      unify(operand, argument);
    for (auto [result, argument, returned] :
         llvm::zip(loop.getResults(), body.getArguments(),
                   body.front().getTerminator()->getOperands())) {
      unify(result, argument);
      unify(returned, argument);
    }
  });
}

std::vector<int> DimClasses::segmentsOf(Value value, int64_t dim) const {
  auto found = dims_.find(value);
  if (found == dims_.end()) return {};
  return classes_.Segments(found->second[dim]);
}

std::vector<int> DimClasses::segmentsOf(Operation* op, int factor) const {
  return classes_.Segments(factors_.find(op)->second.dims[factor]);
}

const nn::ShardingRule* DimClasses::ruleOf(Operation* op) const {
  auto found = factors_.find(op);
  return found == factors_.end() ? nullptr : &found->second.rule;
}

const std::vector<int>& DimClasses::dimsOf(Value value) {
  auto [place, inserted] = dims_.try_emplace(value);
  auto type = mlir::dyn_cast<mlir::RankedTensorType>(value.getType());
  if (inserted && type)
    for (int64_t size : type.getShape())
      place->second.push_back(classes_.AddDim(std::max<int64_t>(size, 1)));
  return place->second;
}

void DimClasses::unify(Value a, Value b) {
  const std::vector<int> left = dimsOf(a), right = dimsOf(b);
  for (auto [x, y] : llvm::zip_equal(left, right)) classes_.Unify({x}, {y});
}

void DimClasses::visit(Operation* op) {
  for (Value value : op->getOperands()) dimsOf(value);
  for (Value value : op->getResults()) dimsOf(value);
  if (auto rule = nn::shardingRuleOf(op)) {
    Factors& factors = factors_[op];
    factors.rule = std::move(*rule);
    for (const nn::Factor& factor : factors.rule.factors)
      factors.dims.push_back(
          classes_.AddDim(std::max<int64_t>(factor.size, 1)));
    // The result of a kernel's gradient is a window, and no image.
    auto conv = mlir::dyn_cast<nn::ConvOp>(op);
    const bool links_windows = !conv || !stored_.isKernelGradient(conv);
    for (auto [value, tensor] :
         llvm::zip(op->getOperands(), factors.rule.operands))
      visitTensor(value, tensor, factors, links_windows);
    for (auto [value, tensor] :
         llvm::zip(op->getResults(), factors.rule.results))
      visitTensor(value, tensor, factors, links_windows);
  }
  linkJoined(op);
}

void DimClasses::visitTensor(Value value, const nn::TensorFactors& tensor,
                             const Factors& factors, bool links_windows) {
  const std::vector<int>& dims = dimsOf(value);
  for (auto [dim, list] : llvm::zip(dims, tensor)) {
    if (list.size() == 1 && IsHalo(factors.rule.factors[list[0]].kind)) {
      if (links_windows) classes_.Link(dim, factors.dims[list[0]]);
      continue;
    }
    std::vector<int> parts;
    for (int factor : list) parts.push_back(factors.dims[factor]);
    if (!parts.empty()) classes_.Unify({dim}, parts);
  }
}

// Concatenation, padding and slicing have no factor along their dimension, but
// its meaning stays the same.
void DimClasses::linkJoined(Operation* op) {
  if (!mlir::isa<nn::ConcatOp, nn::PadOp, nn::SliceOp>(op)) return;
  const std::vector<int> result = dimsOf(op->getResult(0));
  for (Value operand : op->getOperands()) {
    // A table of which only the first rows are used is not a sequence.
    if (mlir::isa<nn::SliceOp>(op) && mlir::isa<mlir::BlockArgument>(operand))
      continue;
    const std::vector<int> dims = dimsOf(operand);
    if (dims.size() != result.size()) continue;  // the fill value of a pad
    for (auto [x, y] : llvm::zip_equal(dims, result)) classes_.Link(x, y);
  }
}

}  // namespace partita::sharding
