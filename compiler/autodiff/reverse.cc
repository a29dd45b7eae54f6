// Walks forward to find dependents of the wanted values, then backward to build
// gradients.
#include "compiler/autodiff/reverse.h"

#include "compiler/autodiff/gradient.h"
#include "compiler/autodiff/recompute.h"
#include "llvm/ADT/StringMap.h"
#include "mlir/IR/SymbolTable.h"

namespace partita::autodiff {
namespace {

using llvm::SmallVector;
using mlir::LogicalResult;
using mlir::Operation;
using mlir::Value;

bool isFloat(Value value) {
  auto type = llvm::dyn_cast<mlir::RankedTensorType>(value.getType());
  return type && llvm::isa<mlir::FloatType>(type.getElementType());
}

llvm::DenseSet<Value> dependents(mlir::Block& block,
                                 const llvm::DenseSet<Value>& wanted);

// Finds the results of calls that depend on wanted operands. A function may
// hold computations that have nothing to do with each other: those of a model
// that is trained, and those of its teacher.
class DependentResults {
 public:
  llvm::SmallVector<bool> of(mlir::func::CallOp call,
                             const llvm::DenseSet<Value>& wanted) {
    llvm::SmallVector<bool> operands;
    for (Value operand : call.getOperands())
      operands.push_back(wanted.contains(operand));
    auto& known = known_[call.getCallee()];
    for (const auto& [given, results] : known)
      if (given == operands) return results;
    known.push_back({operands, inFunction(call, operands)});
    return known.back().second;
  }

 private:
  using Flags = llvm::SmallVector<bool>;

  static Flags inFunction(mlir::func::CallOp call, const Flags& operands) {
    auto function =
        mlir::SymbolTable::lookupNearestSymbolFrom<mlir::func::FuncOp>(
            call, call.getCalleeAttr());
    if (!function || function.isExternal())
      return Flags(call.getNumResults(), true);
    llvm::DenseSet<Value> wanted;
    for (auto [argument, is_wanted] :
         llvm::zip_equal(function.getArguments(), operands))
      if (is_wanted) wanted.insert(argument);
    const llvm::DenseSet<Value> found = dependents(function.front(), wanted);
    Flags results;
    for (Value value : function.front().getTerminator()->getOperands())
      results.push_back(found.contains(value));
    return results;
  }

  llvm::StringMap<llvm::SmallVector<std::pair<Flags, Flags>>> known_;
};

// Returns the float values that depend on `wanted`.
llvm::DenseSet<Value> dependents(mlir::Block& block,
                                 const llvm::DenseSet<Value>& wanted) {
  llvm::DenseSet<Value> result = wanted;
  DependentResults of_calls;
  for (Operation& op : block.without_terminator()) {
    if (llvm::none_of(op.getOperands(),
                      [&](Value operand) { return result.contains(operand); }))
      continue;
    llvm::SmallVector<bool> depend(op.getNumResults(), true);
    if (auto call = llvm::dyn_cast<mlir::func::CallOp>(op))
      depend = of_calls.of(call, result);
    for (auto [value, depends] : llvm::zip_equal(op.getResults(), depend))
      if (depends && isFloat(value)) result.insert(value);
  }
  return result;
}

class Reverse {
 public:
  Reverse(mlir::Block& block, const llvm::DenseSet<Value>& wanted,
          ValueMap& gradients, DifferentiateCall differentiate_call)
      : dependents_(dependents(block, wanted)),
        gradients_(gradients),
        differentiate_call_(differentiate_call),
        builder_(block.getTerminator()) {
    for (Operation& op : block.without_terminator()) forward_.push_back(&op);
  }

  LogicalResult run() {
    for (Operation* op : llvm::reverse(forward_))
      if (mlir::failed(visit(op))) return mlir::failure();
    return mlir::success();
  }

 private:
  LogicalResult visit(Operation* op) {
    SmallVector<Value> results;
    for (Value result : op->getResults())
      results.push_back(dependents_.contains(result) ? gradients_.lookup(result)
                                                     : Value());
    SmallVector<bool> wanted;
    for (Value operand : op->getOperands())
      wanted.push_back(dependents_.contains(operand));
    if (!llvm::is_contained(wanted, true) ||
        llvm::none_of(results, [](Value value) { return bool(value); }))
      return mlir::success();
    // Copied first, because the call may be replaced.
    SmallVector<Value> operands(op->getOperands());
    mlir::FailureOr<SmallVector<Value>> given =
        differentiate(op, results, wanted);
    if (mlir::failed(given)) return mlir::failure();
    for (auto [operand, gradient] : llvm::zip_equal(operands, *given))
      if (gradient) accumulate(operand, gradient);
    return mlir::success();
  }

  mlir::FailureOr<SmallVector<Value>> differentiate(
      Operation* op, llvm::ArrayRef<Value> results,
      llvm::ArrayRef<bool> wanted) {
    if (auto call = llvm::dyn_cast<mlir::func::CallOp>(op))
      return differentiate_call_(builder_, call, results, wanted);
    auto differentiable = llvm::dyn_cast<GradientOpInterface>(op);
    if (!differentiable)
      return op->emitOpError(
                 "has no gradient, but lies between a trained parameter and "
                 "the loss"),
             mlir::failure();
    Gradient gradient(builder_, op, results, wanted);
    if (mlir::failed(differentiable.buildGradient(gradient)))
      return mlir::failure();
    return SmallVector<Value>(gradient.operands());
  }

  void accumulate(Value value, Value gradient) {
    Value& sum = gradients_[value];
    sum = sum ? mlir::arith::AddFOp::create(builder_, gradient.getLoc(), sum,
                                            gradient)
                    .getResult()
              : gradient;
  }

  const llvm::DenseSet<Value> dependents_;
  ValueMap& gradients_;
  DifferentiateCall differentiate_call_;
  mlir::OpBuilder builder_;
  SmallVector<Operation*> forward_;
};

}  // namespace

LogicalResult decomposeForGradients(mlir::Block& block,
                                    const llvm::DenseSet<Value>& wanted) {
  const llvm::DenseSet<Value> dependent = dependents(block, wanted);
  for (Operation& op : llvm::make_early_inc_range(block.without_terminator())) {
    auto composite = llvm::dyn_cast<nn::DecompositionOpInterface>(op);
    if (!composite || llvm::isa<GradientOpInterface>(op) ||
        llvm::none_of(op.getResults(),
                      [&](Value result) { return dependent.contains(result); }))
      continue;
    mlir::OpBuilder builder(&op);
    Operation* before = op.getPrevNode();
    mlir::FailureOr<SmallVector<Value>> parts = composite.decompose(builder);
    if (mlir::failed(parts))
      return op.emitOpError("has neither a gradient nor a decomposition");
    if (mlir::Attribute own = op.getAttr(kRecomputeAttr))
      for (Operation* part = before ? before->getNextNode() : &block.front();
           part != &op; part = part->getNextNode())
        part->setAttr(kRecomputeAttr, own);
    op.replaceAllUsesWith(*parts);
    op.erase();
  }
  return mlir::success();
}

LogicalResult reverse(mlir::Block& block, const llvm::DenseSet<Value>& wanted,
                      ValueMap& gradients,
                      DifferentiateCall differentiate_call) {
  return Reverse(block, wanted, gradients, differentiate_call).run();
}

}  // namespace partita::autodiff
