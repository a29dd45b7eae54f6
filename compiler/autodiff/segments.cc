// Outlines runs of operations.
#include "compiler/autodiff/segments.h"

#include "compiler/autodiff/call_marks.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

namespace partita::autodiff {
namespace {

using llvm::SmallVector;
using mlir::Operation;
using mlir::Value;
using mlir::arith::ConstantOp;
using mlir::func::CallOp;
using mlir::func::FuncOp;

void outline(llvm::ArrayRef<Operation*> run, mlir::SymbolTable& symbols) {
  const llvm::DenseSet<Operation*> inside(run.begin(), run.end());
  llvm::SetVector<Value> inputs, outputs;
  llvm::SetVector<Operation*> constants;
  for (Operation* op : run) {
    for (Value operand : op->getOperands()) {
      Operation* producer = operand.getDefiningOp();
      if (producer && inside.contains(producer)) continue;
      if (llvm::isa_and_nonnull<ConstantOp>(producer))
        constants.insert(producer);
      else
        inputs.insert(operand);
    }
    for (Value result : op->getResults())
      for (Operation* user : result.getUsers())
        if (!inside.contains(user)) outputs.insert(result);
  }
  const mlir::Location loc = run.front()->getLoc();
  SmallVector<mlir::Type> input_types, output_types;
  for (Value value : inputs) input_types.push_back(value.getType());
  for (Value value : outputs) output_types.push_back(value.getType());
  FuncOp function =
      FuncOp::create(loc, "segment",
                     mlir::FunctionType::get(run.front()->getContext(),
                                             input_types, output_types));
  function.setPrivate();
  mlir::OpBuilder body =
      mlir::OpBuilder::atBlockBegin(function.addEntryBlock());
  mlir::IRMapping mapping;
  mapping.map(inputs.getArrayRef(), function.getArguments());
  for (Operation* constant : constants) body.clone(*constant, mapping);
  for (Operation* op : run) body.clone(*op, mapping);
  SmallVector<Value> returned;
  for (Value value : outputs) returned.push_back(mapping.lookup(value));
  mlir::func::ReturnOp::create(body, loc, returned);
  symbols.insert(function);

  // Insert after the run, where all of its inputs exist.
  mlir::OpBuilder builder(run.back()->getContext());
  builder.setInsertionPointAfter(run.back());
  auto call = CallOp::create(builder, loc, function, inputs.getArrayRef());
  if (mlir::Attribute stage = run.front()->getAttr(kStageAttr))
    call->setAttr(kStageAttr, stage);
  for (auto [value, result] :
       llvm::zip_equal(outputs.getArrayRef(), call.getResults())) {
    Value produced = value;
    produced.replaceAllUsesWith(result);
  }
  for (Operation* op : llvm::reverse(run)) op->erase();
}

}  // namespace

void outlineSegments(FuncOp main, mlir::SymbolTable& symbols) {
  SmallVector<SmallVector<Operation*>> runs(1);
  for (Operation& op : main.front().without_terminator()) {
    if (llvm::isa<ConstantOp>(op)) continue;
    if (llvm::isa<CallOp>(op)) {
      runs.emplace_back();
      continue;
    }
    if (!runs.back().empty() &&
        runs.back().front()->getAttr(kStageAttr) != op.getAttr(kStageAttr))
      runs.emplace_back();
    runs.back().push_back(&op);
  }
  for (llvm::ArrayRef<Operation*> run : runs)
    if (!run.empty()) outline(run, symbols);
}

}  // namespace partita::autodiff
