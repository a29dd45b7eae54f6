// Computes which values depend on parameters alone, and which widths are made
// into which.
#include "compiler/sharding/model_structure.h"

#include "dialects/nn/dialect.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::sharding {

using llvm::DenseSet;
using mlir::BlockArgument;
using mlir::Operation;
using mlir::Value;
using mlir::func::FuncOp;

namespace {

// True for elementwise work and data movement: the result has the same source
// as the operand.
bool isTransparent(Operation* op) {
  return op->hasTrait<mlir::OpTrait::Elementwise>() ||
         mlir::isa<nn::BroadcastOp, nn::ReshapeOp, nn::TransposeOp, nn::SliceOp,
                   nn::ConcatOp, nn::PadOp>(op);
}

}  // namespace

ModelStructure::ModelStructure(mlir::ModuleOp module, const DimClasses& classes)
    : stored_(classes.stored()) {
  module.walk([&](Operation* op) {
    if (mlir::isa<nn::DotGeneralOp, nn::ConvOp>(op))
      addContraction(op, classes);
  });
}

bool ModelStructure::isInput(BlockArgument argument) const {
  auto function = mlir::cast<FuncOp>(argument.getOwner()->getParentOp());
  const auto kind = function.getArgAttrOfType<mlir::StringAttr>(
      argument.getArgNumber(), nn::kKindAttr);
  return function.isPublic() && !isStored(argument) &&
         (!kind || kind.getValue() == "input");
}

bool ModelStructure::isMadeOfIntegerInputs(Value value) const {
  DenseSet<Value> sources, seen;
  addSources(value, sources, seen);
  return !sources.empty() && llvm::all_of(sources, [&](Value source) {
    auto argument = mlir::dyn_cast<BlockArgument>(source);
    if (!argument) return false;
    const auto values = stored_.callers().valuesOf(argument);
    if (!values.empty())
      return llvm::all_of(
          values, [&](Value outer) { return isMadeOfIntegerInputs(outer); });
    auto type = mlir::dyn_cast<mlir::RankedTensorType>(argument.getType());
    return isInput(argument) && type && type.getElementType().isInteger();
  });
}

bool ModelStructure::joinsStreams(mlir::arith::AddFOp op) const {
  // Gradients of slices, padded and summed up, are one tensor in parts.
  if (op.getLhs().getDefiningOp<nn::PadOp>() ||
      op.getRhs().getDefiningOp<nn::PadOp>())
    return false;
  DenseSet<Value> left, right, seen_left, seen_right;
  addSources(op.getLhs(), left, seen_left);
  addSources(op.getRhs(), right, seen_right);
  return !left.empty() && !right.empty() &&
         llvm::none_of(left,
                       [&](Value source) { return right.contains(source); });
}

bool ModelStructure::isProductWithBias(Value value) const {
  while (Operation* op = value.getDefiningOp()) {
    if (auto dot = mlir::dyn_cast<nn::DotGeneralOp>(op))
      return isStored(dot.getLhs()) || isStored(dot.getRhs());
    if (!mlir::isa<mlir::arith::AddFOp, mlir::arith::MulFOp,
                   mlir::arith::DivFOp, nn::ReshapeOp, nn::TransposeOp,
                   nn::SliceOp, nn::SoftmaxOp>(op))
      return false;
    Value next;
    for (Value operand : op->getOperands()) {
      if (isStored(operand)) continue;
      if (next) return false;
      next = operand;
    }
    if (!next) return false;
    value = next;
  }
  return false;
}

Value ModelStructure::sourceOf(Value value) const {
  DenseSet<Value> sources, seen;
  addSources(value, sources, seen);
  return sources.size() == 1 ? *sources.begin() : Value();
}

void ModelStructure::addSources(Value value, DenseSet<Value>& sources,
                                DenseSet<Value>& seen) const {
  if (isStored(value) || !seen.insert(value).second) return;
  Operation* op = value.getDefiningOp();
  if (!op || !isTransparent(op)) {
    sources.insert(value);
    return;
  }
  for (Value operand : op->getOperands()) addSources(operand, sources, seen);
}

const std::set<int>& ModelStructure::setOf(
    const std::map<int, std::set<int>>& sets, int segment) {
  static const std::set<int> none;
  auto found = sets.find(segment);
  return found == sets.end() ? none : found->second;
}

void ModelStructure::addContraction(Operation* op, const DimClasses& classes) {
  const nn::ShardingRule* rule = classes.ruleOf(op);
  if (!rule) return;
  auto appears = [](const nn::TensorFactors& tensor, int factor) {
    return llvm::any_of(tensor, [&](const nn::DimFactors& dim) {
      return llvm::is_contained(dim, factor);
    });
  };
  for (const int weight : {0, 1}) {
    if (!isStored(op->getOperand(weight)) ||
        isStored(op->getOperand(1 - weight)))
      continue;
    const nn::TensorFactors& parameter = rule->operands[weight];
    std::set<int> from, to;
    for (int factor = 0; factor < static_cast<int>(rule->factors.size());
         ++factor) {
      const std::vector<int> segments = classes.segmentsOf(op, factor);
      if (segments.empty() || !appears(parameter, factor)) continue;
      const bool in_other = appears(rule->operands[1 - weight], factor);
      if (rule->factors[factor].kind == nn::FactorKind::kReduced && in_other)
        from.insert(segments.front());
      if (rule->factors[factor].kind == nn::FactorKind::kCarried && !in_other)
        to.insert(segments.front());
    }
    for (int source : from)
      for (int target : to) {
        made_into_[source].insert(target);
        made_from_[target].insert(source);
      }
  }
}

}  // namespace partita::sharding
