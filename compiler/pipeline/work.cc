#include "compiler/pipeline/work.h"

#include <type_traits>

#include "dialects/nn/dialect.h"

namespace partita::pipeline {
namespace {

int64_t elementsOf(mlir::ValueRange values) {
  int64_t elements = 0;
  for (mlir::Value value : values)
    if (auto type = llvm::dyn_cast<mlir::RankedTensorType>(value.getType());
        type && type.hasStaticShape())
      elements += type.getNumElements();
  return elements;
}

// Multiplications of the experts that rows choose: two or three products per
// row, and in the gradient two more for each of them.
template <typename Op>
int64_t workOfExperts(Op op) {
  const int64_t experts = op.getUp().getType().getDimSize(0);
  int64_t matrices = op.getGate() ? 3 : 2;
  if (std::is_same_v<Op, nn::ExpertsGradOp>) matrices = 3 * matrices - 1;
  return experts == 0 ? 0
                      : op.getIds().getType().getNumElements() * matrices *
                            (op.getUp().getType().getNumElements() / experts);
}

}  // namespace

int64_t Work::of(mlir::Operation* op) {
  if (auto experts = llvm::dyn_cast<nn::ExpertsOp>(op))
    return workOfExperts(experts);
  if (auto experts = llvm::dyn_cast<nn::ExpertsGradOp>(op))
    return workOfExperts(experts);
  if (auto call = llvm::dyn_cast<mlir::func::CallOp>(op)) {
    auto callee =
        mlir::SymbolTable::lookupNearestSymbolFrom<mlir::func::FuncOp>(
            call, call.getCalleeAttr());
    return callee && !callee.isExternal() ? of(callee) : 0;
  }
  if (auto ruled = llvm::dyn_cast<nn::ShardingRuleOpInterface>(op)) {
    const nn::ShardingRule rule = ruled.getShardingRule();
    if (!rule.multilinear.empty()) {
      int64_t work = 1;
      for (const nn::Factor& factor : rule.factors) work *= factor.size;
      return work;
    }
  }
  return elementsOf(op->getOperands()) + elementsOf(op->getResults());
}

int64_t Work::of(mlir::func::FuncOp function) {
  auto found = functions_.find(function);
  if (found != functions_.end()) return found->second;
  int64_t work = 0;
  for (mlir::Operation& op : function.front().without_terminator())
    work += of(&op);
  functions_[function] = work;
  return work;
}

}  // namespace partita::pipeline
